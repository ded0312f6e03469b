"""The sums of usage are what the attempts say, through edits, scales, retries, disruptions, crashes and clock steps."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from random import Random
from typing import Any, Final
from uuid import UUID, uuid4

import pytest

from app.db import former_namespaces, purge
from app.db.installation.leases import Lease
from app.db.jobs.controller import persist, persist_in
from app.db.postgres.engine import Database
from app.db.usage import reads as usage_reads
from app.db.usage import writes as usage_writes
from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet, former_name
from app.domain.plan import JobPlan
from app.domain.reconcile.values import Decision
from app.domain.usage.groups import UsageGroup
from app.domain.usage.holds import milliseconds
from app.domain.usage.pages import before_all, is_cursor
from app.domain.usage.query import UsageQuery, UsageRow
from app.domain.usage.report import usage_of_job
from app.domain.usage.sums import Cell, Rate, UsageChange
from app.domain.vocabulary import CleanUpPolicy, RestartPolicy, Use
from tests.db.factories import decision, new_job, stored, submitted
from tests.support.model.cluster import World
from tests.support.model.stories import COMMON, CONTROLLER, DISTURBANCES, ON_POD, PEOPLE, play
from tests.support.plans import T0, a_plan, restarting, with_templates

OPS = (*COMMON * 12, *CONTROLLER, *DISTURBANCES, *ON_POD, *PEOPLE)
ALL: Final = UsageQuery(first=date(2029, 12, 1), last=date(2031, 12, 31))
LIVES = 24

# Everything is computed anew from the records of attempts and jobs, by formulas in place of marks.
RECOMPUTED = """
WITH parts AS (
    SELECT j.namespace, j.created_by, j.kind, a.outcome, a.stopping, a.hold -> 'requests' AS requests, since, started,
           COALESCE(until, $1) AS until, work_since, work_until
    FROM (
        SELECT job_uid, hold, outcome, stopping FROM attempts
        UNION ALL
        SELECT job_uid, hold, NULL, NULL FROM replicas WHERE outcome IS NULL
    ) AS a JOIN jobs AS j ON j.uid = a.job_uid,
    LATERAL (SELECT (a.hold ->> 'since')::numeric AS since, (a.hold ->> 'started')::numeric AS started,
                    (a.hold ->> 'until')::numeric AS until) AS h,
    LATERAL (SELECT CASE WHEN h.until IS NULL THEN j.status #> '{usage,work}' ELSE a.hold -> 'work' END AS work) AS w,
    LATERAL (SELECT (work ->> 'since')::numeric AS work_since, (work ->> 'until')::numeric AS work_until) AS t
    WHERE a.hold IS NOT NULL
), idle AS (
    SELECT *, until - GREATEST(since, LEAST(until, COALESCE(work_until, until))) AS after_work,
           CASE WHEN started IS NULL OR outcome = 'Succeeded' THEN 0
                ELSE GREATEST(0, LEAST(until, COALESCE(work_since, until), COALESCE(work_until, until)) - started)
           END AS before_work
    FROM parts
), uses AS (
    SELECT namespace, created_by, kind, requests, 'idle' AS use, after_work + before_work AS length FROM idle
    UNION ALL
    SELECT namespace, created_by, kind, requests,
           CASE WHEN outcome = 'Failed' THEN 'repeated'
                WHEN outcome = 'Disrupted' THEN 'disrupted'
                WHEN outcome = 'Stopped' AND stopping IN ('Evicted', 'Unplaceable', 'StartDeadlineExceeded')
                THEN 'disrupted' ELSE 'useful' END,
           until - since - after_work - before_work
    FROM idle
    UNION ALL
    SELECT namespace, created_by, kind, '{"jobs": 1}', 'queued',
           COALESCE((status -> 'usage' ->> 'queued')::numeric, 0)
           + COALESCE($1 - (status -> 'usage' ->> 'queued_since')::numeric, 0)
    FROM jobs
)
SELECT namespace, created_by, kind, key AS resource, use, sum(value::numeric * length) AS total
FROM uses, jsonb_each_text(requests) GROUP BY 1, 2, 3, 4, 5 HAVING sum(value::numeric * length) <> 0
"""


def a_plan_of(random: Random) -> JobPlan:
    tasks = random.choice([{"worker": 1}, {"worker": 3}, {"ps": 1, "worker": 2}])
    restart = restarting(random.choice([0, 2, None]), random.choice(list(RestartPolicy)))
    plan = a_plan(tasks, restart=restart, clean_up=random.choice(list(CleanUpPolicy)), least=random.choice([None, 1]))
    plan = replace(plan, tasks=tuple(replace(task, elastic=True) for task in plan.tasks))
    # More bytes in a day than 2^63.
    requests = {"cpu": random.choice(["100m", "64"]), "memory": "900Gi", "nvidia.com/gpu": "8"}
    spec = {"containers": [{"name": "train", "resources": {"requests": requests}}]}
    return with_templates(plan, {task.name: spec for task in plan.tasks})


def decisions_of(random: Random) -> tuple[list[Decision], int]:
    """The decisions about a job whose clock also steps back, and the time of the last one."""
    decisions: list[Decision] = []
    world = World(plan=a_plan_of(random), check=lambda _world, _inputs, found: decisions.append(found))
    for _ in range(60):
        world.advance(random.choice([0.001, 7.5, 40.0, 3_700.0, 90_000.0, -1_800.0]))
        play(world, [(random.choice(OPS), random.randint(0, 12))])
    return [found for found in decisions if found.dirty], milliseconds(world.now)


async def store(db: Database, lease: Lease, uid: UUID, found: Decision, random: Random) -> None:
    """Store a decision as a controller does that may crash before the transaction ends, or store it once more."""
    job = await stored(db, uid)
    write = job.write(found, group=job.usage_group("team-queue" if random.random() < 0.5 else "", ["team"]))
    if random.random() < 0.1:
        with pytest.raises(RuntimeError, match="crash"):
            await _crash(db, lease, write)
    assert await persist(db, lease, [write]) == []
    if random.random() < 0.1:
        async with db.read() as connection:
            await connection.execute("UPDATE jobs SET labels = $2 WHERE uid = $1", uid, {"team": "edited"})
    if random.random() < 0.1:
        assert await persist(db, lease, [write]) == [uid], "a decision is stored once"


async def _crash(db: Database, lease: Lease, write: Any) -> None:
    async with db.begin() as connection:
        await persist_in(connection, lease, [write])
        raise RuntimeError("crash")


async def every_group(db: Database, query: UsageQuery, now: int) -> list[UsageRow]:
    """Read all groups in few pages."""
    part = await usage_reads.read_page(db, query, before_all(query), 10_000, now)
    rows = part.rows
    while part.end is not None:
        part = await usage_reads.read_page(db, query, part.end, 10_000, now)
        rows += part.rows
    return rows


def flat(rows: list[UsageRow]) -> dict[tuple[Any, ...], int]:
    return {
        (*row.key, resource, use.value): total
        for row in rows
        for resource, uses in row.sums.items()
        for use, total in uses.items()
        if total
    }


def added_up(sums: Mapping[tuple[Any, ...], int], *places: int) -> dict[tuple[Any, ...], int]:
    found: dict[tuple[Any, ...], int] = {}
    for key, total in sums.items():
        short = tuple(key[place] for place in places)
        found[short] = found.get(short, 0) + total
    return found


async def test_sums_are_those_of_the_attempts(db: Database, lease: Lease) -> None:
    random, lives = Random(1), dict[UUID, list[Decision]]()
    now = 0
    for number in range(LIVES):
        found, ended = decisions_of(random)
        labels = {"team": random.choice("xyz")} if number % 4 else {}
        owner = {"namespace": f"ns-{number % 3}", "created_by": random.choice(["alice", "bob"])}
        [uid] = await submitted(db, new_job(f"job-{number}", created_at=T0, labels=labels, **owner))
        lives[uid], now = found, max(now, ended)
    while any(lives.values()):
        uid = random.choice([uid for uid, left in lives.items() if left])
        await store(db, lease, uid, lives[uid].pop(0), random)
    now += 5_000_123
    async with db.read() as connection:
        rows = await connection.fetch(RECOMPUTED, now)
    recomputed = {tuple(row.values())[:-1]: int(row["total"]) for row in rows}
    by = ("namespace", "user", "kind", "queue", "label:team", "day")
    counted = flat(await every_group(db, replace(ALL, by=by), now))
    assert {use for *_, use in counted} == set(Use)
    assert all(total > 0 for total in counted.values())
    assert added_up(counted, 0, 1, 2, 6, 7) == recomputed
    of_jobs: dict[tuple[Any, ...], int] = {}
    for uid in lives:
        row = usage_of_job((await stored(db, uid)).recorded.status.usage, await usage_reads.rates_of(db, uid), now)
        for key, total in flat([row]).items():
            of_jobs[key] = of_jobs.get(key, 0) + total
    assert of_jobs == added_up(counted, 6, 7)
    for dimensions, places in [((), ()), (("day",), (5,)), (("label:team", "queue"), (4, 3)), (("user",), (1,))]:
        some = flat(await every_group(db, replace(ALL, by=dimensions), now))
        assert some == added_up(counted, *places, 6, 7)
    for first, last in spans_of(random, sorted({key[5] for key in counted})):
        some = flat(await every_group(db, replace(ALL, by=("user",), first=first, last=last), now))
        within = {key: total for key, total in counted.items() if first.isoformat() <= key[5] <= last.isoformat()}
        assert some == added_up(within, 1, 6, 7), (first, last)
    assert await inexact_months(db) == 0
    for dimensions in PAGED:
        await pages_are_the_whole(db, random, replace(ALL, by=dimensions), now)
        for first, last in spans_of(random, sorted({key[5] for key in counted}))[:4]:
            await pages_are_the_whole(db, random, replace(ALL, by=dimensions, first=first, last=last), now)
    assert await purge_ended(db) > 0
    assert flat(await every_group(db, replace(ALL, by=by), now)) == counted, "the sums do not depend on the records"


async def purge_ended(db: Database) -> int:
    """Purge the jobs that hold nothing, and return the number of their attempts that are deleted with them."""
    async with db.begin() as connection:
        await connection.execute(
            """
            UPDATE jobs SET phase = 'Failed', finished_at = $1, gone_at = $1, quiet = true
            WHERE uid NOT IN (SELECT job_uid FROM usage_rates)
            """,
            T0,
        )
        before = await connection.fetchval("SELECT count(*) FROM attempts")
    ended_before = {f"ns-{number}": T0 + timedelta(1) for number in range(3)}
    a_purge = purge.Purge(db=db, of=purge.JOBS, ended_before=ended_before, objects=3, rows=7)
    while not (await a_purge.step()).is_last:
        pass
    async with db.read() as connection:
        return int(before - await connection.fetchval("SELECT count(*) FROM attempts"))


PAGED: Final = [
    (),
    ("day",),
    ("namespace",),
    ("namespace", "day"),
    ("day", "label:team"),
    ("queue", "day", "user"),
    ("label:team", "kind", "user", "day"),
]


async def pages_are_the_whole(db: Database, random: Random, query: UsageQuery, now: int) -> None:
    """Read in pages of any size, of which each may examine much or little, what one read returns."""
    whole = await every_group(db, query, now)
    size, found, place = random.randint(1, 9), list[UsageRow](), before_all(query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(usage_reads, "MOST_SUMS", random.choice([1, 40, 300, 12_000]))
        while True:
            part = await usage_reads.read_page(db, query, place, size, now)
            assert len(part.rows) <= size
            found += part.rows
            if part.end is None:
                break
            assert is_cursor(part.end, query)
            assert part.end > place
            place = part.end
    assert found == whole


def spans_of(random: Random, days: list[str]) -> list[tuple[date, date]]:
    """Return spans of which one end or both are within the days on which something was used."""
    begin, end = date.fromisoformat(days[0]), date.fromisoformat(days[-1])
    inner = [begin + timedelta(random.randint(-20, (end - begin).days + 20)) for _ in range(60)]
    return [(min(pair), max(pair)) for pair in zip(inner[::2], inner[1::2], strict=True)]


async def inexact_months(db: Database) -> int:
    """Return the number of sums by month that are not those of their days."""
    async with db.read() as connection:
        return int(await connection.fetchval(INEXACT_MONTHS))


INEXACT_MONTHS = """
SELECT count(*) FROM (
    SELECT group_id, date_trunc('month', day::timestamp)::date AS month, resource, sum(useful) AS useful,
           sum(repeated) AS repeated, sum(disrupted) AS disrupted, sum(idle) AS idle, sum(queued) AS queued
    FROM usage_days GROUP BY 1, 2, 3
) AS recomputed
FULL JOIN usage_months AS m USING (group_id, month, resource)
WHERE (recomputed.useful, recomputed.repeated, recomputed.disrupted, recomputed.idle, recomputed.queued)
      IS DISTINCT FROM (m.useful, m.repeated, m.disrupted, m.idle, m.queued)
"""


async def test_months_follow_each_change_of_their_days(db: Database) -> None:
    for group in (ALICE, replace(ALICE, namespace="b")):
        await add(db, group)
        await add(db, group, 10**30)
    async with db.begin() as connection:
        await connection.execute("UPDATE usage_days SET useful = 5, queued = 3 WHERE group_id % 2 = 0")
        await connection.execute(
            "INSERT INTO usage_days VALUES (1, '2030-02-28', 'cpu', 1), (1, '2030-02-01', 'cpu', 2)"
        )
        await connection.execute("DELETE FROM usage_days WHERE day = '2030-02-28'")
        count = await connection.fetchval("SELECT count(*) FROM usage_months")
    assert count == 5
    assert await inexact_months(db) == 0


NOON = milliseconds(T0 + timedelta(hours=12))
ALICE = UsageGroup(namespace="a", user_id="oidc:1", user_name="alice", kind="GenericJob", queue="q")
GOES_ON = UsageChange(rates={Cell(NOON // 86_400_000, "cpu", Use.USEFUL): Rate(1000, 0)})


async def add(db: Database, group: UsageGroup, amount: int = 7, *, uid: UUID | None = None) -> None:
    change = UsageChange(ended={Cell(NOON // 86_400_000, "cpu", Use.USEFUL): amount}, rates=GOES_ON.rates)
    async with db.begin() as connection:
        await usage_writes.store(connection, [(uid or uuid4(), group, change if uid is None else GOES_ON)])


async def users(db: Database, namespaces: NamespaceSet = EVERY_NAMESPACE, **where: Any) -> dict[tuple[Any, ...], int]:
    query = replace(ALL, by=("namespace", "user"), namespaces=namespaces, **where)
    found = flat(await every_group(db, query, NOON))
    return {key[:2]: total - 1000 * 43_200_000 for key, total in found.items()}


async def test_a_caller_sees_the_namespaces_that_it_may_and_filters(db: Database) -> None:
    await add(db, ALICE)
    await add(db, replace(ALICE, namespace="b", user_name="bob", kind="MxJob"), 9)
    await add(db, replace(ALICE, namespace="kube-system"), 11)
    assert await users(db) == {("a", "alice"): 7, ("b", "bob"): 9}
    assert await users(db, NamespaceSet.of("b")) == {("b", "bob"): 9}
    assert await users(db, NamespaceSet.of()) == {}
    assert await users(db, users=("alice", "carol")) == {("a", "alice"): 7}
    assert await users(db, kinds=("MxJob",)) == {("b", "bob"): 9}
    assert await users(db, queues=("none",)) == {}


async def test_days_outside_the_range_do_not_count(db: Database) -> None:
    await add(db, ALICE)
    day = date(2030, 1, 1)
    for first, last, total in [
        (day, day, 7 + 1000 * 43_200_000),
        (day + timedelta(1), day + timedelta(9), 0),
        (day - timedelta(9), day - timedelta(1), 0),
    ]:
        found = flat(await every_group(db, UsageQuery(first=first, last=last), NOON))
        assert sum(found.values()) == total


async def test_a_client_that_makes_up_queues_and_labels_makes_a_limited_number_of_groups(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_writes, "MOST_GROUPS", 3)
    for number in range(6):
        await add(db, replace(ALICE, queue=f"q{number}", labels=(("team", str(number)),)))
    await add(db, replace(ALICE, namespace="b"))
    found = flat(await every_group(db, replace(ALL, by=("namespace", "queue", "label:team")), NOON))
    made_up = {(f"q{number}", str(number)) for number in range(3)}
    others = {("(other)", "(other)")}
    assert {key[1:3] for key in found if key[0] == "a"} == made_up | others
    assert {key[1] for key in found if key[0] == "b"} == {"q"}
    assert sum(total % 1000 for total in found.values()) == 7 * 7


async def test_the_usage_of_a_former_namespace_leaves_its_name(db: Database, lease: Lease) -> None:
    [uid] = await submitted(db, new_job(namespace="a", created_at=T0))
    await add(db, ALICE)
    async with db.begin() as connection:
        moved = await former_namespaces.move(
            connection, "a", "1", created_before=T0 + timedelta(1), at=T0 + timedelta(1)
        )
    assert moved == 1
    assert await users(db) == {(former_name("a", "1"), "alice"): 7}
    assert await users(db, NamespaceSet.of("a")) == {}, "who may see the new namespace sees nothing of the former one"
    # What its jobs still end is counted there too.
    job = await stored(db, uid)
    change = replace(GOES_ON, ended={Cell(NOON // 86_400_000, "cpu", Use.IDLE): 1})
    found = replace(decision(job.recorded.status), usage=change)
    assert await persist(db, lease, [job.write(found, group=job.usage_group("", []))]) == []
    query = replace(ALL, by=("namespace",))
    assert {key[0] for key in flat(await every_group(db, query, NOON))} == {former_name("a", "1")}


async def test_rates_that_an_earlier_version_has_left_are_forgotten(db: Database) -> None:
    live, ended = await submitted(db, new_job("live"), new_job("ended", names=()))
    for uid in (live, ended):
        await add(db, ALICE, uid=uid)
    async with db.begin() as connection:
        await connection.execute("UPDATE jobs SET quiet = true WHERE uid = $1", ended)
    await usage_writes.forget_ended(db)
    async with db.read() as connection:
        assert [row["job_uid"] for row in await connection.fetch("SELECT job_uid FROM usage_rates")] == [live]
