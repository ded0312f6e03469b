"""Restarts of controllers: the time from the lease until every live job is reconciled, and the CPU time until then."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from statistics import median
from typing import TypeAlias

from bench.measuring.client import Target
from bench.measuring.processes import cpu_seconds, tree
from bench.measuring.report import table
from bench.memory import peak_mib
from bench.recovery import epoch, wait_for_takeover

Serving: TypeAlias = Callable[[], AbstractAsyncContextManager[Target]]


@dataclass(slots=True, kw_only=True)
class Side:
    """An installation with its jobs. `serving` runs its gateway and controller during a block."""

    title: str
    url: str
    serving: Serving
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)


async def restart(side: Side) -> None:
    former = await epoch(side.url)
    async with side.serving() as target:
        takeover = await wait_for_takeover(side.url, former)
        pid = target.pids["jobgate"]
        side.seconds.append(takeover.reconciled - takeover.leased)
        side.cpu.append(cpu_seconds(pid))
        side.peak.append(max(map(peak_mib, tree(pid))))


def restarts_table(sides: Sequence[Side]) -> list[str]:
    """Return a row for each side, with ratios to the first one: of neighbouring restarts and of median CPU times."""
    first = sides[0]
    rows = []
    for side in sides:
        ratio = median(a / b for a, b in zip(side.seconds, first.seconds, strict=True))
        rows.append(
            (
                side.title,
                f"{median(side.seconds):.1f} s",
                f"{min(side.seconds):.1f}-{max(side.seconds):.1f}",
                f"{ratio:.2f}",
                f"{median(side.cpu):.1f} s",
                f"{median(side.cpu) / median(first.cpu):.2f}",
                f"{max(side.peak):.0f} MiB",
            )
        )
    return table(("controller restarted", "reconciled", "spread", "ratio", "CPU", "CPU ratio", "peak"), rows)
