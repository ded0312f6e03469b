"""Pages of a job's events read only the evidence that they show."""

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from app.db.jobs import attempts, evidence
from app.domain.status.records import Attempt
from app.domain.vocabulary import Evidence
from app.services.reading import JobReader


@pytest.mark.parametrize(
    ("start", "limit", "shown", "read"),
    [(0, 3, ["0a", "0b", "1a"], [0, 1]), (3, 2, ["1b", "2a"], [0, 1, 2]), (7, 9, ["3b"], [0, 1, 2, 3])],
    ids=["first", "second", "last"],
)
async def test_no_evidence_is_read_beyond_the_page(
    start: int, limit: int, shown: list[str], read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks: list[int] = []

    async def of(*_: Any) -> list[tuple[str, int, Attempt]]:
        return [("worker", rank, Attempt(number=1, evidence=Evidence.CAPTURED)) for rank in range(4)]

    async def pod_events(_db: Any, _uid: Any, key: Any, _attempt: int) -> list[dict[str, Any]]:
        ranks.append(key.rank)
        return [{"reason": f"{key.rank}{letter}"} for letter in "ab"]

    monkeypatch.setattr(attempts, "of", of)
    monkeypatch.setattr(evidence, "pod_events", pod_events)
    row: Any = SimpleNamespace(uid=uuid4(), status=SimpleNamespace(pending_reasons=()))
    unused: Any = None
    events = await JobReader(unused, unused).events(row, start, limit)
    assert ([event.reason for event in events], ranks) == (shown, read)
