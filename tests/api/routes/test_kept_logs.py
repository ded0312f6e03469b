"""Whole logs over HTTP: their ranges, lines, headers and list, and the refusal of parameters that contradict others."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from app.domain.kept_logs.keys import LogKey
from app.domain.kept_logs.records import GapReason, KeptLogState
from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, Replica
from app.domain.vocabulary import JobPhase, Outcome, ReplicaPhase
from app.log_store import LogStore, open_store
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, running_gateway
from tests.support.kept_logs import finish, keep, store_ended_job, timed
from tests.support.postgres import fresh_database

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOGS = jobs_path(NAMESPACE, "hello", "logs")
RAN = (ObservedContainer(name="main", state="terminated", exit_code=0, restart_count=1),)
JSON = {"Accept": "application/jsonl"}
ROTATED = "[jobgate] the node had deleted a part of the log before it was read"


def ended(number: int, outcome: Outcome = Outcome.SUCCEEDED) -> Attempt:
    return Attempt(number=number, pod_uid=str(number), outcome=outcome, phase=ReplicaPhase.SUCCEEDED, containers=RAN)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url(postgres_server_url: str, database_template: str) -> AsyncIterator[str]:
    async with fresh_database(postgres_server_url, template=database_template) as created:
        yield created


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> LogStore:
    return open_store(f"file://{tmp_path_factory.mktemp('store')}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(url: str, store: LogStore) -> AsyncIterator[Gateway]:
    """A gateway without a cluster, which has an ended job with two replicas, of which the first ran twice."""
    async with running_gateway(url, log_store=store) as running:
        uid = UUID((await running.submit())["uid"])
        replicas = [Replica(key=Rank("worker", 0), attempt=ended(2)), Replica(key=Rank("worker", 1), attempt=ended(1))]
        first = [(Rank("worker", 0), ended(1, Outcome.FAILED))]
        await running.conclude(str(uid), {"phase": JobPhase.SUCCEEDED}, replicas=replicas, ended=first)
        key = LogKey(uid, "worker", 0, 2, "main", 1)
        db = running.db
        await finish(db, await keep(db, store, key._replace(attempt=1), timed(b"crash")))
        await finish(db, await keep(db, store, key._replace(run=0), timed(b"run 0", first=1)))
        await keep(db, store, key, timed(b"a", b"bb", first=2), gap=GapReason.ROTATED)
        log = await keep(db, store, key, timed(b"ccc \xff", first=10))
        await finish(db, log, KeptLogState.CUT, "the job has reached its limit")
        await finish(db, await keep(db, store, key._replace(rank=1, attempt=1), timed(b"b 1", b"b 2", first=3)))
        yield running


async def lines_of(gateway: Gateway, **params: Any) -> list[dict[str, Any]]:
    answer = await gateway.client.get(LOGS, params=params, headers=JSON)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/jsonl")
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_the_headers_say_what_an_answer_is(gateway: Gateway) -> None:
    answer = await gateway.client.get(LOGS, params={"offset": 2, "limit": 3})
    assert (answer.status_code, answer.content) == (200, b"bb\n")
    headers = {name: value for name, value in answer.headers.items() if name.startswith("jobgate-log")}
    assert headers == {
        "jobgate-log-source": "kept, stored",
        "jobgate-log-truncated": "false",
        "jobgate-log-offset": "2",
        "jobgate-log-size": "11",
        "jobgate-log-missing": "1 gap, cut",
        "jobgate-log-run": "1",
        "jobgate-log-attempt": "2",
        "jobgate-log-container": "main",
    }


async def test_the_bytes_of_a_range_have_no_lines_of_jobgate_between_them(gateway: Gateway) -> None:
    whole = (await gateway.client.get(LOGS, params={"offset": 0})).content
    assert whole == b"a\nbb\nccc \xff\n"
    for begin in range(len(whole) + 2):
        answer = await gateway.client.get(LOGS, params={"offset": begin, "limit": 4})
        assert answer.content == whole[begin : begin + 4]
    assert b"[jobgate]" in (await gateway.client.get(LOGS)).content


async def test_the_bytes_of_a_line_that_was_cut_off_by_a_gap_have_no_line_break_of_jobgate(
    gateway: Gateway, store: LogStore
) -> None:
    key = await store_ended_job(gateway, "torn")
    await keep(gateway.db, store, key, timed(b"a", b"bb")[:-1], gap=GapReason.ROTATED)
    await finish(gateway.db, await keep(gateway.db, store, key, timed(b"ccc", first=10)))
    path = jobs_path(NAMESPACE, "torn", "logs")
    assert (await gateway.client.get(path, params={"offset": 0})).content == b"a\nbbccc\n"
    assert (await gateway.client.get(path)).text.splitlines()[1:] == ["bb", ROTATED, "ccc"]


async def test_each_json_line_has_its_place_and_what_is_missing_has_a_word(gateway: Gateway) -> None:
    assert await lines_of(gateway) == [
        {"offset": 0, "number": 0, "at": "2026-01-02T00:00:02.000000000Z", "line": "a"},
        {"offset": 2, "number": 1, "at": "2026-01-02T00:00:03.000000000Z", "line": "bb"},
        {
            "offset": 5,
            "number": 2,
            "at": None,
            "line": ROTATED,
            "missing": "rotated",
        },
        {"offset": 5, "number": 2, "at": "2026-01-02T00:00:10.000000000Z", "line": "ccc \ufffd"},
        {
            "offset": 11,
            "number": 3,
            "at": None,
            "line": "[jobgate] from here on the log is not kept: the job has reached its limit",
            "missing": "cut",
        },
    ]


@pytest.mark.parametrize(
    ("params", "lines"),
    [
        ({"offset": 1, "limit": 4}, ["bb"]),
        ({"sinceTime": "2026-01-02T00:00:03Z", "untilTime": "2026-01-02T00:00:10Z"}, ["bb"]),
        ({"sinceTime": "2026-01-02T01:00:10+01:00"}, ["ccc \ufffd"]),
        ({"untilTime": "0001-01-01T00:00:00Z"}, []),
        ({"sinceTime": "9999-12-31T23:59:59Z"}, []),
        ({"search": "^b"}, ["bb"]),
        ({"tailLines": 2}, ["bb", "ccc \ufffd"]),
        ({"offset": 2**63 - 1}, []),
        ({"offset": 5, "limit": 2**63 - 1}, ["ccc \ufffd"]),
        ({"run": 0}, ["run 0"]),
        ({"previous": True}, ["run 0"]),
        ({"attempt": 1}, ["crash"]),
    ],
)
async def test_a_part_of_a_log(params: dict[str, Any], lines: list[str], gateway: Gateway) -> None:
    found = await lines_of(gateway, **params)
    assert [line["line"] for line in found if not line.get("missing")] == lines


async def test_merged_logs_of_ended_attempts_are_in_the_order_of_time(gateway: Gateway) -> None:
    newest = await lines_of(gateway, merged=True)
    written = [(line["rank"], line["attempt"], line["line"]) for line in newest if line["at"]]
    assert written == [(0, 2, "a"), (0, 2, "bb"), (1, 1, "b 1"), (1, 1, "b 2"), (0, 2, "ccc \ufffd")]
    found = await lines_of(gateway, merged=True, allAttempts=True, search="^(crash|a|b 2)$")
    assert [line["line"] for line in found if line["at"]] == ["crash", "a", "b 2"]


async def test_the_list_has_each_run_of_each_attempt(gateway: Gateway) -> None:
    answer = await gateway.client.get(jobs_path(NAMESPACE, "hello", "kept-logs"), params={"pageSize": 3})
    page = answer.json()
    assert [(item["rank"], item["attempt"], item["run"], item["state"], item["bytes"]) for item in page["items"]] == [
        (0, 1, 1, "complete", 6),
        (0, 2, 0, "complete", 6),
        (0, 2, 1, "cut", 11),
    ]
    assert page["items"][2] | {"note": None} == {
        "task": "worker",
        "rank": 0,
        "attempt": 2,
        "container": "main",
        "run": 1,
        "state": "cut",
        "bytes": 11,
        "lines": 3,
        "firstAt": "2026-01-02T00:00:02Z",
        "lastAt": "2026-01-02T00:00:10Z",
        "gaps": 1,
        "note": None,
    }
    params = {"pageSize": 3, "pageToken": page["nextPageToken"]}
    last = (await gateway.client.get(jobs_path(NAMESPACE, "hello", "kept-logs"), params=params)).json()
    assert ([item["rank"] for item in last["items"]], last["nextPageToken"]) == ([1], None)
    of_rank = await gateway.client.get(jobs_path(NAMESPACE, "hello", "kept-logs"), params={"rank": 1})
    assert [item["rank"] for item in of_rank.json()["items"]] == [1]


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"offset": -1}, "offset"),
        ({"offset": 2**63}, "offset"),
        ({"limit": 0}, "limit"),
        ({"limit": 10**30}, "limit"),
        ({"search": "(("}, "search"),
        ({"search": "(x?){900}"}, "search"),
        ({"search": "a" * 1001}, "search"),
        ({"search": "a\0"}, "search"),
        ({"sinceTime": "yesterday"}, "sinceTime"),
        ({"sinceTime": "2026-01-02T00:00:00"}, "sinceTime"),
        ({"untilTime": "1767312000"}, "untilTime"),
        ({"sinceTime": "2026-01-02T00:00:00Z", "sinceSeconds": 1}, "sinceSeconds"),
        ({"follow": True, "limit": 1}, "limit"),
        ({"follow": True, "untilTime": "2026-01-02T00:00:00Z"}, "untilTime"),
        ({"tailLines": 1, "offset": 1}, "offset"),
        ({"previous": True, "run": 1}, "run"),
        ({"merged": True, "offset": 1}, "offset"),
        ({"merged": True, "rank": 1}, "rank"),
        ({"allAttempts": True}, "allAttempts"),
        ({"run": -1}, "run"),
    ],
)
async def test_a_parameter_that_is_not_valid_is_named(params: dict[str, Any], name: str, gateway: Gateway) -> None:
    answer = await gateway.client.get(LOGS, params=params)
    assert answer.status_code == 400
    [error] = answer.json()["errors"]
    assert error["pointer"] == f"/query/{name}"
    assert error["detail"]


async def test_a_search_for_bytes_that_are_not_utf_8_is_refused(gateway: Gateway) -> None:
    """The log has such a byte, which the answer shows as U+FFFD."""
    answer = await gateway.client.get(f"{LOGS}?search=c%20%FF")
    assert (answer.status_code, answer.json()["errors"][0]["detail"]) == (400, "invalid UTF-8")
    assert (await gateway.client.get(f"{LOGS}?search=c%20")).status_code == 200


async def test_a_run_that_is_not_kept_is_not_found(gateway: Gateway) -> None:
    answer = await gateway.client.get(LOGS, params={"run": 7})
    assert (answer.status_code, answer.json()["code"]) == (404, "NoLog")


async def test_other_teams_see_nothing_of_kept_logs(url: str, gateway: Gateway, tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}")
    async with running_gateway(url, closed=True, log_store=store) as closed:
        headers = await closed.token("viewer", "others")
        for path in (LOGS, jobs_path(NAMESPACE, "hello", "kept-logs")):
            assert (await closed.client.get(path, headers=headers)).status_code == 404
            by_uid = f"/api/v1/jobs/{(await gateway.client.get(jobs_path(NAMESPACE, 'hello'))).json()['uid']}"
            hidden = await closed.client.get(f"{by_uid}/{path.rpartition('/')[2]}", headers=headers)
            assert hidden.status_code == 404
