"""The usage of the namespaces that a caller may see, by any dimension, as JSON and as CSV, and that of one job."""

import base64
import csv
import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from app.db.usage import writes as usage_writes
from app.domain.usage.groups import UsageGroup
from app.domain.usage.holds import JobUse, milliseconds
from app.domain.usage.prices import Prices
from app.domain.usage.query import MOST_DAYS
from app.domain.usage.sums import DAY, Cell, Rate, UsageChange
from app.domain.vocabulary import Use
from tests.support.gateways.gateway import Gateway, jobs_path

USAGE = "/api/v1/usage"
HOUR = 3_600_000
GIB = 2**30
ALICE = UsageGroup(
    namespace="team-a", user_id="oidc:1", user_name="alice", kind="GenericJob", queue="research",
    labels=(("team", "vision"),),
)  # fmt: skip
BOB = UsageGroup(namespace="team-b", user_id="", user_name="=cmd()", kind="MxJob")


def today() -> int:
    return milliseconds(datetime.now(UTC)) // DAY  # noqa: TID251 - a test is its own clock


async def used(gateway: Gateway, group: UsageGroup, ended: dict[tuple[int, str, Use], int]) -> None:
    """Let jobs of a group have used something: by days before today, resource and use."""
    sums = {Cell(today() - ago, resource, use): total for (ago, resource, use), total in ended.items()}
    async with gateway.db.begin() as connection:
        await usage_writes.store(connection, [(uuid4(), group, UsageChange(ended=sums))])


async def some_usage(gateway: Gateway) -> None:
    await used(
        gateway,
        ALICE,
        {
            (0, "cpu", Use.USEFUL): 2000 * HOUR,
            (0, "cpu", Use.IDLE): 1,
            (0, "jobs", Use.QUEUED): 1500,
            (1, "cpu", Use.REPEATED): 1000 * HOUR,
            (1, "memory", Use.DISRUPTED): 10**9 * GIB * HOUR,
        },
    )
    await used(gateway, BOB, {(2, "nvidia.com/gpu", Use.USEFUL): 8 * HOUR})


async def got(gateway: Gateway, headers: dict[str, str] | None = None, **params: Any) -> Any:
    params = {name.rstrip("_"): value for name, value in params.items()}
    answer = await gateway.client.get(USAGE, params=params, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "private, no-cache"
    return answer.json()


async def test_usage_is_added_up_by_dimensions(gateway: Gateway) -> None:
    await some_usage(gateway)
    [whole] = (await got(gateway))["items"]
    assert whole["queuedSeconds"] == 1.5
    assert whole["resources"]["cpu"] == {
        "useful": 7200, "repeated": 3600, "disrupted": 0, "idle": 1e-6, "total": 10_800.000001
    }  # fmt: skip
    assert "jobs" not in whole["resources"]
    assert whole["cost"] is None
    found = (await got(gateway, by="namespace,user,label:team"))["items"]
    assert [(item["namespace"], item["user"], item["labels"], item["day"]) for item in found] == [
        ("team-a", "alice", {"team": "vision"}, None),
        ("team-b", "=cmd()", {"team": None}, None),
    ]
    by_day = (await got(gateway, by="day", resource="cpu"))["items"]
    assert [sorted(item["resources"]) for item in by_day] == [["cpu"], ["cpu"]]
    assert [item["day"] for item in by_day] == sorted(item["day"] for item in by_day)
    assert (await got(gateway, by="queue,kind", user="=cmd()"))["items"][0]["queue"] is None


async def test_a_caller_sees_the_usage_of_its_namespaces(closed_gateway: Gateway) -> None:
    await some_usage(closed_gateway)
    of_b = await closed_gateway.token("viewer", "team-b")
    [item] = (await got(closed_gateway, of_b, by="namespace,user"))["items"]
    assert (item["namespace"], list(item["resources"])) == ("team-b", ["nvidia.com/gpu"])
    answer = await closed_gateway.client.get(USAGE, params={"namespace": "team-a"}, headers=of_b)
    assert (answer.status_code, answer.json()["code"]) == (404, "NotFound")
    everything = await got(closed_gateway, await closed_gateway.token("viewer", "*"), by="namespace")
    assert [item["namespace"] for item in everything["items"]] == ["team-a", "team-b"]


async def pages(gateway: Gateway, **params: Any) -> list[Any]:
    """Return the items of all pages, each read with the token of the one before."""
    found: list[Any] = []
    while True:
        page = await got(gateway, **params)
        assert page["items"]
        found += page["items"]
        if page["nextPageToken"] is None:
            return found
        params["pageToken"] = page["nextPageToken"]


@pytest.mark.parametrize("by", ["namespace", "namespace,day", "day,user", "label:team,day", "queue,day,kind"])
async def test_groups_come_in_pages(gateway: Gateway, by: str) -> None:
    await some_usage(gateway)
    whole = await got(gateway, by=by)
    assert await pages(gateway, by=by, pageSize=1) == whole["items"]
    assert len(whole["items"]) == (3 if "day" in by else 2)
    assert whole["nextPageToken"] is None


async def test_groups_with_the_longest_names_have_tokens(gateway: Gateway) -> None:
    long = replace(ALICE, user_name="\U0001f600" * 253, queue="q" * 253, labels=(("team", "t" * 63),))
    for namespace in ("a" * 63, "b" * 63):
        await used(gateway, replace(long, namespace=namespace), {(0, "cpu", Use.USEFUL): 1})
    assert len(await pages(gateway, by="user,queue,label:team,namespace,day", pageSize=1)) == 2


def fields(token: str) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(base64.urlsafe_b64decode(token + "=="))
    return decoded


def changed(token: str, **values: Any) -> str:
    """Return a token with other values."""
    return base64.urlsafe_b64encode(msgspec.json.encode({**fields(token), **values})).rstrip(b"=").decode()


async def test_a_token_is_that_of_its_query(gateway: Gateway) -> None:
    await some_usage(gateway)
    token = (await got(gateway, by="namespace,day", pageSize=1))["nextPageToken"]
    made_up = [
        changed(token, cursor=["0team-a"]),
        changed(token, cursor=["0team-a", "2026-01-01", "0a"]),
        changed(token, cursor=["0team-a", "yesterday"]),
        changed(token, cursor=["0team-a", "20260101"]),
        changed(token, first="0001-01-01"),
        changed(token, last="0001-01-01"),
        changed(token, last="yesterday"),
    ]
    for by, wrong in [*(("namespace,day", each) for each in made_up), ("day,namespace", token)]:
        answer = await gateway.client.get(USAGE, params={"by": by, "pageToken": wrong})
        assert (answer.status_code, answer.json()["code"]) == (400, "InvalidPageToken"), wrong


async def test_prices_change_no_token(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions from before and after an upgrade read each other's tokens, and gateways with other prices do too."""
    await some_usage(gateway)
    of_before = (await got(gateway, by="namespace", pageSize=1))["nextPageToken"]
    monkeypatch.setattr(gateway.services.usage, "prices", Prices(currency="EUR", hourly={"cpu": Decimal(1)}))
    assert (await got(gateway, by="namespace", pageSize=1))["nextPageToken"] == of_before
    assert set(fields(of_before)) == {"question", "first", "last", "cursor"}, "the previous version knows no other one"
    following = await got(gateway, by="namespace", pageSize=1, pageToken=of_before)
    assert (following["currency"], [item["namespace"] for item in following["items"]]) == ("EUR", ["team-b"])


async def test_pages_have_the_same_days_after_midnight(gateway: Gateway) -> None:
    await some_usage(gateway)
    page = await got(gateway, by="namespace", pageSize=1)
    days = {name: datetime.fromisoformat(page[f"{name}Day"]) - timedelta(1) for name in ("first", "last")}
    yesterday = changed(page["nextPageToken"], **{name: day.date().isoformat() for name, day in days.items()})
    following = await got(gateway, by="namespace", pageSize=1, pageToken=yesterday)
    assert following["lastDay"] == days["last"].date().isoformat()
    assert [item["namespace"] for item in following["items"]] == ["team-b"]


async def test_csv_is_exact_and_no_formula(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    await some_usage(gateway)
    hourly = {"cpu": Decimal("0.1"), "memory": Decimal("1e-9"), "nvidia.com/gpu": Decimal(2)}
    monkeypatch.setattr(gateway.services.usage, "prices", Prices(currency="EUR", hourly=hourly))
    answer = await gateway.client.get(USAGE, params={"by": "user", "format": "csv"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(line["user"], line["resource"], line["useful_seconds"]) for line in lines] == [
        ("'=cmd()", "nvidia.com/gpu", "28800.000"), ("alice", "cpu", "7200.000000"), ("alice", "memory", "0.000"),
    ]  # fmt: skip
    assert lines[1]["idle_seconds"] == "0.000001"
    assert lines[2]["disrupted_seconds"] == f"{10**9 * GIB * 3600}.000", "exact, though no float has it"
    assert [line["cost_EUR"] for line in lines] == ["16.000000", "1.300000", "1.300000"]
    page = await got(gateway, by="user")
    assert page["currency"] == "EUR"
    assert page["items"][1]["cost"] == {"useful": 0.2, "repeated": 0.1, "disrupted": 1.0, "idle": 0, "total": 1.3}


@pytest.mark.parametrize(
    ("params", "pointer", "detail"),
    [
        ({"by": "team"}, "/query/by", "there is no dimension team"),
        ({"by": "user,user"}, "/query/by", "user is repeated"),
        ({"by": "label:"}, "/query/by", "there is no dimension label:"),
        ({"by": "namespace,user,queue,kind,day,label:a"}, "/query/by", "it names 6 dimensions"),
        ({"from": "2026-02-01", "to": "2026-01-31"}, "/query/from", "2026-02-01 is after 2026-01-31"),
        ({"from": "2020-01-01", "to": "2026-01-31"}, "/query/from", "these are 2223 days"),
        ({"from": "yesterday"}, "/query/from", "it is not written as a date"),
        ({"from": "2026-02-30"}, "/query/from", "outside expected range"),
        ({"from": "2026-02-01T00:00:00+02:00"}, "/query/from", "it is not written as a date"),
        ({"to": "1700000000"}, "/query/to", "it is not written as a date"),
        ({"format": "xml"}, "/query/format", "'json' or 'csv'"),
        ({"namespace": ""}, "/query/namespace", "a lowercase RFC 1123 label"),
        ({"format": "csv", "pageToken": "a"}, "/query/pageToken", "a CSV has all groups"),
        ({"users": "alice"}, "/query/users", "there is no such parameter"),
    ],
)
async def test_wrong_parameters_are_named(gateway: Gateway, params: dict[str, str], pointer: str, detail: str) -> None:
    answer = await gateway.client.get(USAGE, params=params)
    [error] = answer.json()["errors"]
    assert (answer.status_code, error["pointer"]) == (400, pointer)
    assert detail in error["detail"]
    assert error["accepted"]


async def test_a_label_that_no_sum_has_is_refused(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async def asked(key: str, **params: str) -> Any:
        answer = await gateway.client.get(USAGE, params={"by": f"namespace,label:{key}", **params})
        return answer.status_code, answer.json().get("errors")

    status, [error] = await asked("team")
    assert (status, error["pointer"], error["detail"]) == (400, "/query/by", "usage is not added up by the label team")
    assert error["accepted"] == (
        "up to 5 different ones of namespace, user, queue, kind, day; operators set labels with JOBGATE_USAGE_LABELS"
    )
    monkeypatch.setattr(gateway.services.usage, "_labels", {"project"})
    assert await asked("project") == (200, None), "a label of the setting, before a job has it"
    await used(gateway, ALICE, {(0, "cpu", Use.USEFUL): 1})
    assert (await asked("team"))[0] == 400, "what is stored is read once a minute, because that examines all groups"
    monkeypatch.setattr(gateway.services.usage, "_labels_read_at", float("-inf"))
    assert await asked("team") == (200, None), "a label that was in the setting, of which values are stored"
    for params in ({}, {"format": "csv"}):
        status, [error] = await asked("tema", **params)
        assert (status, error["accepted"]) == (
            400, "up to 5 different ones of namespace, user, queue, kind, day, label:project, label:team"
        )  # fmt: skip


async def test_the_days_are_those_until_today(gateway: Gateway) -> None:
    await some_usage(gateway)
    page = await got(gateway)
    first, last = (datetime.fromisoformat(page[name]) for name in ("firstDay", "lastDay"))
    assert (last - first).days == 29
    assert (await got(gateway, to="0001-01-03"))["firstDay"] == "0001-01-01"
    most = (last - timedelta(MOST_DAYS - 1)).date().isoformat()
    assert (await got(gateway, from_=most))["firstDay"] == most
    assert (await got(gateway, to=(last - timedelta(3)).date().isoformat()))["items"] == []


async def test_the_usage_of_a_job_includes_what_goes_on(gateway: Gateway) -> None:
    uid = (await gateway.submit())["uid"]
    now = milliseconds(datetime.now(UTC))  # noqa: TID251 - a test is its own clock
    day, offset = divmod(now - HOUR, DAY)
    ended = {"cpu": {Use.REPEATED: Decimal(3_000_000)}}
    await gateway.conclude(uid, {"usage": JobUse(queued=2500, ended=ended)})
    change = UsageChange(rates={Cell(day, "nvidia.com/gpu", Use.USEFUL): Rate(2, 2 * offset)})
    async with gateway.db.begin() as connection:
        await usage_writes.store(connection, [(UUID(uid), ALICE, change)])
    by_name = (await gateway.client.get(jobs_path("team", "hello", "usage"))).json()
    assert by_name["queuedSeconds"] == 2.5
    assert by_name["resources"]["cpu"]["repeated"] == 3
    held = by_name["resources"]["nvidia.com/gpu"]["useful"]
    assert 7200 <= held < 10_000
    by_uid = (await gateway.client.get(f"/api/v1/jobs/{uid}/usage")).json()
    assert by_uid["resources"]["nvidia.com/gpu"]["useful"] >= held
    assert (await gateway.client.get(jobs_path("team", "other", "usage"))).status_code == 404
