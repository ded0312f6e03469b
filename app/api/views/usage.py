"""The views of usage. Seconds are those of cores, bytes, devices, pods and jobs."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

from app.api.views.base import NextPageToken, View
from app.api.views.closed_sets import JobKindName
from app.domain.usage.prices import Prices
from app.domain.usage.query import LABEL, Dimension, UsageQuery
from app.domain.usage.report import ShownUsage
from app.domain.vocabulary import Use


class UsesView(View):
    """How much of something each use has."""

    useful: float
    """Of attempts that succeeded, still run, or were stopped by a client."""
    repeated: float
    """Of attempts that failed."""
    disrupted: float
    """Of attempts that the cluster ended."""
    idle: float
    """While other replicas were awaited, and after the job was stopped or had ended."""
    total: float
    """The sum of all uses."""


class UsageView(View):
    """What jobs have used."""

    queued_seconds: float
    """Seconds in which the jobs waited and had no pod on a node."""
    resources: dict[str, UsesView]
    """By the name of the resource, what was requested while pods held it: seconds of cores of `cpu`, of bytes of
    `memory`, of units of any other resource, and of `pods`."""
    cost: UsesView | None
    """The cost in `currency`; null if the installation has no prices."""


class UsageGroupView(UsageView):
    """The usage of a group of jobs. Fields by which the usage is not added up are null."""

    namespace: str | None
    user: str | None
    """Name of the token or user that submitted the jobs."""
    queue: str | None
    """Null also where the jobs have no queue."""
    kind: JobKindName | None
    day: date | None
    """The day in UTC."""
    labels: dict[str, str | None]
    """The labels of `by`, without a value where the jobs lack one."""


class UsagePage(View):
    """A page of usage, by the values of `by`."""

    first_day: date
    """The first day that is counted, in UTC."""
    last_day: date
    """The last day that is counted, in UTC."""
    by: list[str]
    """By what the usage is added up."""
    observed_at: datetime
    """Until when the usage of jobs is counted that still run or wait."""
    currency: str | None
    """The currency of all costs; null if the installation has no prices."""
    items: list[UsageGroupView]
    next_page_token: NextPageToken


class JobUsageView(UsageView):
    """What one job has used."""

    observed_at: datetime
    """Until when the usage is counted if the job still runs or waits."""
    currency: str | None
    """The currency of the cost; null if the installation has no prices."""


def page_view(
    query: UsageQuery, shown: Sequence[ShownUsage], token: str | None, observed_at: datetime, prices: Prices | None
) -> UsagePage:
    return UsagePage(
        first_day=query.first,
        last_day=query.last,
        by=list(query.by),
        observed_at=observed_at,
        currency=_currency(prices),
        items=[_group_view(query.by, usage) for usage in shown],
        next_page_token=token,
    )


def job_view(usage: ShownUsage, observed_at: datetime, prices: Prices | None) -> JobUsageView:
    about = {"observed_at": observed_at, "currency": _currency(prices)}
    return JobUsageView.model_validate(about | _usage(usage))


def _currency(prices: Prices | None) -> str | None:
    return prices.currency if prices is not None else None


def _group_view(by: Sequence[str], usage: ShownUsage) -> UsageGroupView:
    values = dict(zip(by, usage.key, strict=True))
    labels = {name.removeprefix(LABEL): value for name, value in values.items() if name.startswith(LABEL)}
    dimensions = {dimension.value: values.get(dimension) for dimension in Dimension}
    return UsageGroupView.model_validate({**dimensions, "labels": labels, **_usage(usage)})


def _usage(usage: ShownUsage) -> dict[str, object]:
    return {
        "queued_seconds": float(usage.queued),
        "resources": {resource: _uses(uses) for resource, uses in usage.resources.items()},
        "cost": _uses(usage.cost) if usage.cost is not None else None,
    }


def _uses(uses: Mapping[Use, Decimal]) -> UsesView:
    shown = {use.value: float(amount) for use, amount in uses.items()}
    return UsesView.model_validate({**shown, "total": float(sum(uses.values()))})
