"""The span of a group commit: below one of the requests that share it, and linked to the others."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from app.db.jobs.group_commit import GroupCommit
from app.db.postgres.engine import Database
from app.telemetry import tracing
from app.telemetry.trace_context import TraceContext, continue_trace
from app.telemetry.tracing import Attributes, SpanKind, SpanStart
from tests.db.factories import new_job

Context = TraceContext | None


@dataclass
class Recorded:
    """A span that the recorder has started."""

    name: str
    parent: Context
    links: Sequence[TraceContext]
    attributes: Attributes
    trace: Context = None
    is_ended: bool = False

    def rename(self, name: str) -> None: ...
    def note(self, attributes: Attributes) -> None: ...
    def fail(self, error: str) -> None: ...
    def end(self) -> None:
        self.is_ended = True


@dataclass
class Recorder:
    """A tracer that keeps its spans."""

    spans: list[Recorded] = field(default_factory=list)

    def start(self, wanted: SpanStart) -> Recorded:
        assert (wanted.kind, wanted.began_at) == (SpanKind.INTERNAL, None)
        self.spans.append(Recorded(wanted.name, wanted.parent, wanted.links, wanted.attributes))
        return self.spans[-1]

    def stop(self) -> None: ...


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    made = Recorder()
    monkeypatch.setattr(tracing._Process, "tracer", made)
    return made


def trace(number: int, *, sampled: bool = True) -> TraceContext:
    return TraceContext(f"{number:032x}", f"{number:016x}", int(sampled))


async def committed(db: Database, traces: Sequence[Context]) -> None:
    """Commit a job in each of these traces, all in one transaction."""
    commit = GroupCommit(db)

    async def submit(number: int, found: Context) -> None:
        with continue_trace(found):
            await commit.submit(new_job(f"job-{number}"))

    async with asyncio.TaskGroup() as group:
        jobs = [group.create_task(submit(number, found)) for number, found in enumerate(traces)]
        await asyncio.sleep(0)
        running = group.create_task(commit.run())
        await asyncio.wait(jobs)
        running.cancel()


@pytest.mark.parametrize(
    ("traces", "parent", "links"),
    [
        ([trace(1)], trace(1), []),
        ([trace(1), trace(2), None, trace(3)], trace(1), [trace(2), trace(3)]),
        ([trace(1), trace(1), trace(2)], trace(1), [trace(2)]),
        ([trace(1, sampled=False), trace(2)], trace(2), [trace(1, sampled=False)]),
        ([trace(1, sampled=False)], trace(1, sampled=False), []),
    ],
    ids=["alone", "shared", "one request twice", "one is sampled", "none is sampled"],
)
async def test_a_commit_is_one_span(
    traces: Sequence[Context], parent: Context, links: Sequence[TraceContext], db: Database, recorder: Recorder
) -> None:
    await committed(db, traces)
    (span,) = recorder.spans
    assert (span.name, span.parent, list(span.links), span.is_ended) == ("commit", parent, links, True)
    assert span.attributes == {"jobgate.commit.jobs": len(traces)}


async def test_a_commit_for_no_trace_has_no_span(db: Database, recorder: Recorder) -> None:
    await committed(db, [None, None])
    assert recorder.spans == []
