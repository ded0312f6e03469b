"""Tables of figures: the measure, both sides, their ratio with its spread, and the goal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.measuring.client import Measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """The same measure on both sides, several times, alternating. Without a control plane, `theirs` is empty."""

    name: str
    goal: float | None = None
    ours: Sequence[Measured]
    theirs: Sequence[Measured]

    @property
    def ratios(self) -> list[float]:
        return [a.rate / b.rate for a, b in zip(self.ours, self.theirs, strict=False) if b.rate]

    @property
    def cpu_ratios(self) -> list[float]:
        """The ratio of CPU times per operation: the ratio of rates if each side had all cores to itself."""
        both = zip(self.ours, self.theirs, strict=False)
        return [b.cpu_per_operation / a.cpu_per_operation for a, b in both if a.rate and b.rate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """Seconds from the transition of a pod until an HTTP client receives it."""

    wanted_rate: float
    rate: float
    missed: int
    cpu: Mapping[str, float]  # cores
    after_answer: Sequence[float]  # from the cluster's answer to the write
    after_request: Sequence[float]  # from the request that wrote it


_HEAD = (
    "measure",
    "jobgate",
    "kube-apiserver",
    "ratio",
    "spread",
    "goal",
    "p50/p99 ms",
    "CPU ms/op",
    "CPU ratio",
    "client cores",
)


def comparison(pairs: Sequence[Pairs]) -> list[str]:
    """A table of all pairs, with the medians of several runs."""
    return table(_HEAD, [_row(pair) for pair in pairs]) + [warning for pair in pairs for warning in _warnings(pair)]


def _row(pair: Pairs) -> tuple[str, ...]:
    ratios = pair.ratios
    return (
        pair.name,
        _middle(pair.ours, lambda run: run.rate, "{:.0f}/s"),
        _middle(pair.theirs, lambda run: run.rate, "{:.0f}/s"),
        f"{median(ratios):.2f}" if ratios else "-",
        f"{min(ratios):.2f}-{max(ratios):.2f}" if ratios else "-",
        f">= {pair.goal:g}" if pair.goal else "",
        f"{_latency(pair.ours)} ; {_latency(pair.theirs)}",
        f"{_cost(pair.ours)} ; {_cost(pair.theirs)}",
        f"{median(pair.cpu_ratios):.2f}" if pair.cpu_ratios else "-",
        f"{_client(pair.ours)} ; {_client(pair.theirs)}",
    )


def _middle(runs: Sequence[Measured], of: Callable[[Measured], float], form: str) -> str:
    return form.format(median(of(run) for run in runs)) if runs else "-"


def _latency(runs: Sequence[Measured]) -> str:
    if not runs:
        return "-"
    return f"{median(run.p50 for run in runs) * 1e3:.1f}/{median(run.p99 for run in runs) * 1e3:.1f}"


def _cost(runs: Sequence[Measured]) -> str:
    return _middle(runs, lambda run: run.cpu_per_operation * 1e3, "{:.2f}")


def _client(runs: Sequence[Measured]) -> str:
    return _middle(runs, lambda run: run.client_cpu, "{:.2f}")


def _warnings(pair: Pairs) -> list[str]:
    found = []
    for side, runs in (("jobgate", pair.ours), ("kube-apiserver", pair.theirs)):
        failures = sum(run.failures for run in runs)
        if failures:
            error = next(run.error for run in runs if run.failures)
            found.append(f"! {pair.name}: {failures} operations of {side} failed, the first with {error}")
    return found


def shares(name: str, runs: Sequence[Measured]) -> str:
    """The CPU of the last measurement by process."""
    if not runs:
        return ""
    last = runs[-1]
    parts = [f"{process} {cpu:.2f}" for process, cpu in last.server_cpu.items()]
    return f"{name}: {', '.join(parts)}, load client {last.client_cpu:.2f} cores"


def lag_table(found: Sequence[Lag]) -> list[str]:
    head = (
        "transitions/s",
        "written/s",
        "seen",
        "missed",
        "p50 ms",
        "p99 ms",
        "max ms",
        "from request p50/p99 ms",
        "cores",
    )
    return table(head, [_lag_row(lag) for lag in found])


def _lag_row(lag: Lag) -> tuple[str, ...]:
    seen = lag.after_answer
    return (
        f"{lag.wanted_rate:g}",
        f"{lag.rate:.0f}",
        str(len(seen)),
        str(lag.missed),
        f"{percentile(seen, 50) * 1e3:.0f}",
        f"{percentile(seen, 99) * 1e3:.0f}",
        f"{max(seen, default=float('nan')) * 1e3:.0f}",
        f"{percentile(lag.after_request, 50) * 1e3:.0f}/{percentile(lag.after_request, 99) * 1e3:.0f}",
        ", ".join(f"{name} {cores:.2f}" for name, cores in lag.cpu.items()),
    )


def percentile(values: Sequence[float], percent: int) -> float:
    if not values:
        return float("nan")
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def breakdown_table(title: str, stages: Mapping[str, float]) -> list[str]:
    whole = sum(stages.values())
    rows = [(stage, f"{cost * 1e6:.0f}", f"{cost / whole:.0%}") for stage, cost in stages.items()]
    return table((title, "CPU us", "share"), [*rows, ("sum", f"{whole * 1e6:.0f}", "")])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table that is aligned as plain text too."""
    widths = [max(len(row[index]) for row in (head, *rows)) for index in range(len(head))]
    lines = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in (head, *rows)]
    rule = ["-" * width for width in widths]
    return ["| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:])]
