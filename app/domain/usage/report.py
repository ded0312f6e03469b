"""Usage as it is shown: in seconds of cores, bytes, devices, pods and jobs, with its cost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from app.domain.usage.holds import CPU, JOBS, JobUse
from app.domain.usage.prices import Prices, costs_of
from app.domain.usage.query import UsageRow
from app.domain.usage.sums import DAY, Cell, Rate, sum_rates
from app.domain.vocabulary import Use

HELD: Final = tuple(use for use in Use if use is not Use.QUEUED)
"""The uses of what pods hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownUsage:
    """The usage of a group or of a job. `resources` has the seconds of each use, by resource.

    `queued` are the seconds in which jobs waited. `cost` is None without prices.
    """

    key: tuple[str | None, ...] = ()
    queued: Decimal = Decimal(0)
    resources: Mapping[str, Mapping[Use, Decimal]] = field(default_factory=dict)
    cost: Mapping[Use, Decimal] | None = None


def show(row: UsageRow, prices: Prices | None) -> ShownUsage:
    """Return a row of sums in seconds, exactly."""
    waits = row.sums.get(JOBS)
    costs = costs_of(row.sums, prices) if prices is not None else None
    return ShownUsage(
        key=row.key,
        queued=_seconds(JOBS, waits[Use.QUEUED]) if waits is not None else Decimal(0),
        resources={
            resource: {use: _seconds(resource, uses[use]) for use in HELD}
            for resource, uses in sorted(row.sums.items())
            if resource != JOBS
        },
        cost={use: costs[use] for use in HELD} if costs is not None else None,
    )


def _seconds(resource: str, total: int) -> Decimal:
    # By the exponent: a division would round to the precision of the context.
    return Decimal(total).scaleb(-6 if resource == CPU else -3)


def usage_of_job(job: JobUse, rates: Iterable[tuple[Cell, Rate]], now: int) -> UsageRow:
    """Return the usage of one job until now, with the rates of what goes on."""
    row = UsageRow(key=())
    for resource, uses in job.ended.items():
        for use, total in uses.items():
            row.add(resource, use, int(total))
    row.add(JOBS, Use.QUEUED, job.queued)
    for cell, grown in sum_rates(rates, 0, now // DAY, now, by_day=False).items():
        row.add(cell.resource, cell.use, grown)
    return row
