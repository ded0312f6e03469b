"""The progress of an operation on a SampleSet, from the reports of the runtime servers that work on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class ServerProgress(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How far an operation is on one server, as the server reports it; those of upstream report nothing.

    None means that the server does not know.
    """

    files_done: _Count | None = None
    files_total: _Count | None = None
    bytes_done: _Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationProgress:
    """The sums over the servers that reported progress, which are `reporting` of the `servers` that have the operation.

    PostgreSQL stores it, so its field names never change.
    """

    files_done: int | None
    files_total: int | None
    bytes_done: int | None
    reporting: int
    servers: int


def overall(reports: Sequence[ServerProgress | None]) -> OperationProgress | None:
    """Return the progress of an operation with one report for each of its servers, or None if no server reports any.

    The total is known only if every server reports its own.
    """
    known = [report for report in reports if report is not None]
    if not known:
        return None
    totals = [report.files_total for report in known if report.files_total is not None]
    return OperationProgress(
        files_done=_sum([report.files_done for report in known]),
        files_total=sum(totals) if len(totals) == len(reports) else None,
        bytes_done=_sum([report.bytes_done for report in known]),
        reporting=len(known),
        servers=len(reports),
    )


def _sum(figures: Sequence[int | None]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None
