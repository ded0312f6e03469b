"""The history of a job or of an object without pods, line by line."""

from dataclasses import dataclass
from typing import Any

from app.domain.plan import Rank
from app.domain.status.records import HistoryEntry

# Reasons of the rows that record a request of a client. Those of the controller are in the domain's vocabulary.
EDITED = "Edited"
CANCEL_REQUESTED = "CancelRequested"
REMOVE_REQUESTED = "RemoveRequested"
DELETE_REQUESTED = "DeleteRequested"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """`seq` counts from 1 without gaps."""

    seq: int
    entry: HistoryEntry


def history_row(row: Any) -> HistoryRow:
    entry = HistoryEntry(
        at=row["at"],
        phase=row["phase"],
        reason=row["reason"],
        message=row["message"],
        actor=row["actor"],
        key=None if row["task"] is None else Rank(row["task"], row["rank"]),
        attempt=row["attempt"],
    )
    return HistoryRow(seq=row["seq"], entry=entry)
