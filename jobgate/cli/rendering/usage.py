"""Text about usage, in hours of cores, GiB and devices. Pure."""

from collections.abc import Iterator

from jobgate.cli.rendering.tables import table
from jobgate.client.types import JobUsage, UsageGroup, UsagePage, Uses

_HOUR = 3600.0
_GIB = 2.0**30
_PODS = "pods"
_LABEL = "label:"
_USES = ("TOTAL", "USEFUL", "REPEATED", "DISRUPTED", "IDLE")


def usage_text(page: UsagePage) -> str:
    """Return the table of `jobgate usage`: a line for each group and resource."""
    days = f"{page.first_day} to {page.last_day}, in hours"
    if not page.items:
        return f"{days}: no job has used anything"
    priced = page.currency is not None
    header = [name.removeprefix(_LABEL).upper() for name in page.by]
    rows = [
        [*([*_key(page.by, group)] if number == 0 else [""] * len(page.by)), *row]
        for group in page.items
        for number, row in enumerate(_rows(group, priced=priced))
    ]
    return f"{days}\n\n{table([*header, *_columns(page.currency)], rows)}"


def job_usage_text(job: JobUsage) -> str:
    """Return the text of `jobgate usage JOB`."""
    if not (job.resources or job.queued_seconds):
        return "the job has used nothing so far"
    return table(_columns(job.currency), list(_rows(job, priced=job.currency is not None)))


def _columns(currency: str | None) -> list[str]:
    return ["RESOURCE", *_USES, "QUEUED", *([f"COST ({currency})"] if currency is not None else [])]


def _key(by: list[str], group: UsageGroup) -> Iterator[str]:
    for name in by:
        value = group.labels.get(name.removeprefix(_LABEL)) if name.startswith(_LABEL) else getattr(group, name)
        yield value or "-"


def _rows(usage: UsageGroup | JobUsage, *, priced: bool) -> Iterator[list[str]]:
    """Yield a line for each resource. What concerns all of them is in the first one."""
    shared = [_hours(usage.queued_seconds), *([f"{usage.cost.total:.2f}" if usage.cost else "-"] if priced else [])]
    # Each pod counts as one of `pods`, so this line says something only if nothing was requested.
    shown = {name: uses for name, uses in usage.resources.items() if name != _PODS} or usage.resources
    for name, uses in shown.items():
        yield [f"{name} GiB" if _is_bytes(name) else name, *_amounts(name, uses), *shared]
        shared = [""] * len(shared)
    if not shown:
        yield ["-", *("-" for _ in _USES), *shared]


def _amounts(resource: str, uses: Uses) -> list[str]:
    unit = _GIB if _is_bytes(resource) else 1.0
    return [_hours(each / unit) for each in (uses.total, uses.useful, uses.repeated, uses.disrupted, uses.idle)]


def _is_bytes(resource: str) -> bool:
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def _hours(seconds: float) -> str:
    """Return hours with two digits behind the point, and what is less than a hundredth as such."""
    hours = seconds / _HOUR
    return "0" if not hours else "<0.01" if hours < 0.005 else f"{hours:.2f}"
