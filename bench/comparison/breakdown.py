"""The CPU time of a request by stage, measured by calling the functions of the program one after the other.

The difference to the CPU time of a request in the server under load is HTTP: protocol, middleware, headers and the
event loop.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast
from uuid import uuid4

from app.api.answers.rendering import job_bytes, status_view
from app.api.answers.responses import json_bytes
from app.base.clock import SystemClock
from app.db.jobs.group_commit import GroupCommit
from app.db.jobs.submit import NewJob, submit
from app.db.objects.submission import Answer, Submitted
from app.db.postgres.engine import Database
from app.domain.access.actors import Actor
from app.domain.decoding import decode_json
from app.domain.manifests.rendered import pod_bytes
from app.domain.planning import Planner
from app.services.reading.jobs import JobReader
from app.services.reading.objects import Address
from app.services.submitting.jobs import JobSubmitter, PreparedJob
from app.services.submitting.objects import SubmitRequest
from app.services.submitting.pod_sets import PodSetCheck
from bench.measuring.bodies import encode, generic_job
from bench.measuring.client import Measured

_ROUNDS = 300  # calls of each stage, to average out noise
_BATCH = 16  # as many jobs or lookups as share a transaction or a statement with 16 clients
_NAMESPACE = "bench-breakdown"
_REQUEST = SubmitRequest(namespace=_NAMESPACE, actor=Actor("bench"))


class _Kept:
    """Replaces the group commit, and keeps the submitted jobs."""

    def __init__(self) -> None:
        self.jobs: list[NewJob] = []

    async def submit(self, job: NewJob) -> Answer:
        self.jobs.append(job)
        return Submitted()


async def cost(work: Callable[[], Awaitable[object]], rounds: int = _ROUNDS) -> float:
    """The CPU seconds of one call in this process."""
    for _ in range(10):
        await work()
    began = time.process_time()
    for _ in range(rounds):
        await work()
    return (time.process_time() - began) / rounds


async def cost_of_call(work: Callable[[], object]) -> float:
    async def called() -> object:
        return work()

    return await cost(called)


async def of_submit(db: Database, under_load: Measured) -> dict[str, float]:
    """The CPU seconds of a submission, by stage."""
    planner, kept, made = Planner(installation=str(uuid4())), _Kept(), list[PreparedJob]()
    submitter = JobSubmitter(
        cast(GroupCommit, kept), planner, SystemClock(), lambda: None, random.SystemRandom(), PodSetCheck(db)
    )
    body = encode(generic_job("breakdown"))
    document = cast(dict[str, Any], decode_json(body))

    def render(prepared: PreparedJob) -> bytes:
        made.append(prepared)
        return b""

    async def service() -> object:
        return await submitter.submit(document, _REQUEST, key=None, render=render)

    whole_service = await cost(service)
    job = kept.jobs[0]
    accepted = made[0].accepted
    plan = planner.plan(accepted, str(job.uid))
    stages = {
        "decode": await cost_of_call(lambda: decode_json(body)),
        "validate, defaults": await cost_of_call(lambda: planner.draft(document, _NAMESPACE, submitter.suffix)),
        "plan": await cost_of_call(lambda: planner.plan(accepted, str(job.uid))),
        "size of the pods": await cost_of_call(lambda: pod_bytes(plan)),
    }
    stages["rest of the service"] = max(0.0, whole_service - sum(list(stages.values())[1:]))
    stages["render the answer"] = await cost_of_call(lambda: job_bytes(accepted, job.row))
    stages[f"database, {_BATCH} a commit"] = await _commit_cost(db, submitter, kept, render) / _BATCH
    return _with_the_rest(stages, under_load)


async def _commit_cost(
    db: Database, submitter: JobSubmitter, kept: _Kept, render: Callable[[PreparedJob], bytes]
) -> float:
    """The CPU seconds of one transaction with a batch of new jobs, in this process."""
    kept.jobs.clear()
    rounds = 40
    run = uuid4().hex[:8]  # the names of an earlier run are still reserved
    for number in range((rounds + 10) * _BATCH):
        document = generic_job(f"breakdown-{run}-{number}")
        await submitter.submit(document, _REQUEST, key=None, render=render)
    batches = iter(range(0, len(kept.jobs), _BATCH))

    async def commit() -> object:
        first = next(batches)
        return await submit(db, kept.jobs[first : first + _BATCH])

    return await cost(commit, rounds)


async def of_status(db: Database, address: Address, under_load: Measured) -> dict[str, float]:
    """The CPU seconds of a poll that is answered from the cache, by stage."""
    reading = JobReader(db, Planner(installation=str(uuid4())))

    async def versions() -> object:
        return await asyncio.gather(*(reading.version(address) for _ in range(_BATCH)))

    async with asyncio.TaskGroup() as group:
        running = group.create_task(reading.run())
        stages = {f"database: version, {_BATCH} a statement": await cost(versions) / _BATCH}
        running.cancel()
    return _with_the_rest(stages, under_load)


async def render_of_status(db: Database, address: Address) -> float:
    """The CPU seconds of reading and rendering a changed row, once for all polls."""
    reading = JobReader(db, Planner(installation=str(uuid4())))

    async def read_and_render() -> object:
        return json_bytes(status_view(await reading.row(address)))

    return await cost(read_and_render)


def _with_the_rest(stages: dict[str, float], under_load: Measured) -> dict[str, float]:
    ours = under_load.server_cpu["jobgate"] / under_load.rate
    stages["HTTP, event loop, the rest"] = max(0.0, ours - sum(stages.values()))
    stages["PostgreSQL's processes"] = under_load.server_cpu["postgres"] / under_load.rate
    return stages
