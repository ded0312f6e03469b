"""The transactions of submissions take turns within a process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.db.jobs import group_commit
from app.db.jobs.group_commit import GroupCommit
from app.db.jobs.submit import submit, submit_together
from app.db.postgres.engine import Database
from tests.db.factories import new_job
from tests.support.postgres import count_rows


async def test_a_process_stores_jobs_in_one_transaction_at_a_time(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several would wait for each other's rows, and each would hold a connection."""
    open_now: set[object] = set()
    most = 0

    def counted(store: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counting(*arguments: Any) -> Any:
            nonlocal most
            transaction = object()
            open_now.add(transaction)
            most = max(most, len(open_now))
            try:
                return await store(*arguments)
            finally:
                open_now.remove(transaction)

        return counting

    monkeypatch.setattr(group_commit, "submit", counted(submit))
    monkeypatch.setattr(group_commit, "submit_together", counted(submit_together))
    commits = GroupCommit(db)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(commits.run())
        lists = [commits.submit_together([new_job(f"a-{number}"), new_job(f"b-{number}")]) for number in range(3)]
        await asyncio.gather(*lists, *(commits.submit(new_job(f"c-{number}")) for number in range(3)))
        running.cancel()
    assert (most, await count_rows(db, "jobs")) == (1, 9)
