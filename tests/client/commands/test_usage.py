"""What `jobgate usage` asks for and prints."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from typing_extensions import override

from tests.client.scripted import RunCommand, ok

HOUR, GIB = 3600, 2**30


def uses(total: float, **of: float) -> dict[str, float]:
    return {"useful": total, "repeated": 0, "disrupted": 0, "idle": 0, **of, "total": total}


def a_group(**changes: Any) -> dict[str, Any]:
    resources = {
        "cpu": uses(2 * HOUR, useful=1.5 * HOUR, idle=0.5 * HOUR),
        "memory": uses(3 * HOUR * GIB),
        "pods": uses(HOUR),
    }
    dimensions = dict.fromkeys(("namespace", "user", "queue", "kind", "day"))
    return {**dimensions, "labels": {}, "queuedSeconds": 10, "resources": resources, "cost": None, **changes}


def a_page(*groups: Any, by: list[str], **changes: Any) -> httpx2.Response:
    about = {"firstDay": "2026-01-02", "lastDay": "2026-01-31", "observedAt": "2026-01-31T12:00:00Z"}
    return ok({**about, "by": by, "currency": None, "items": groups, "nextPageToken": None, **changes})


def test_sums_are_a_table_in_hours(run: RunCommand) -> None:
    groups = [a_group(namespace="team-a"), a_group(namespace="team-b", resources={"pods": uses(HOUR / 900)})]
    result, script = run(["usage"], a_page(*groups, by=["namespace"]))
    assert dict(script.requests[0].url.params) == {"by": "namespace"}
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["2026-01-02", "to", "2026-01-31,", "in", "hours"],
        [],
        ["NAMESPACE", "RESOURCE", "TOTAL", "USEFUL", "REPEATED", "DISRUPTED", "IDLE", "QUEUED"],
        ["team-a", "cpu", "2.00", "1.50", "0", "0", "0.50", "<0.01"],
        ["memory", "GiB", "3.00", "3.00", "0", "0", "0"],
        ["team-b", "pods", "<0.01", "<0.01", "0", "0", "0", "<0.01"],
    ]


def test_each_option_is_a_parameter(run: RunCommand) -> None:
    options = ["--by", "label:team,day", "--from", "2026-01-02", "--to", "2026-01-03", "-n", "team-a", "--user", "a"]
    more = ["--user", "b", "--queue", "q", "--kind", "MxJob", "--resource", "cpu"]
    group = a_group(labels={"team": "vision"}, day="2026-01-02", cost=uses(1.234))
    result, script = run(["usage", *options, *more], a_page(group, by=["label:team", "day"], currency="EUR"))
    assert script.requests[0].url.params.multi_items() == [
        ("by", "label:team,day"), ("from", "2026-01-02"), ("to", "2026-01-03"), ("namespace", "team-a"), ("user", "a"),
        ("user", "b"), ("queue", "q"), ("kind", "MxJob"), ("resource", "cpu"),
    ]  # fmt: skip
    header, first, *_ = result.stdout.splitlines()[2:]
    assert (header.split()[:3], header.split()[-2:]) == (["TEAM", "DAY", "RESOURCE"], ["COST", "(EUR)"])
    assert (first.split()[:3], first.split()[-1]) == (["vision", "2026-01-02", "cpu"], "1.23")


def test_all_pages_are_one_answer(run: RunCommand) -> None:
    pages = a_page(a_group(user="a"), by=["user"], nextPageToken="next"), a_page(a_group(user="b"), by=["user"])
    result, script = run(["usage", "--by", "user", "-o", "yaml"], *pages)
    assert script.requests[1].url.params["pageToken"] == "next"
    assert [line for line in result.stdout.splitlines() if "user:" in line] == ["  user: a", "  user: b"]


def test_csv_is_that_of_the_gateway(run: RunCommand) -> None:
    answer = httpx2.Response(200, content=b"user,resource\r\na,cpu\r\n", headers={"Content-Type": "text/csv"})
    result, script = run(["usage", "--by", "user", "-o", "csv"], answer)
    assert script.requests[0].url.params["format"] == "csv"
    assert result.stdout.splitlines() == ["user,resource", "a,cpu"]
    result, _ = run(["usage", "--by", "user", "-o", "csv"], lambda _: httpx2.Response(200, stream=Torn()))
    assert (result.exit_code, result.stdout.splitlines()) == (2, ["user,resource", "a,cpu"])
    assert result.stderr.endswith(" is cut off: incomplete chunked read\n"), "without advice about the address"
    result, _ = run(["usage", "train", "-o", "csv"])
    assert (result.exit_code, "omit the name of the job" in result.stderr) == (2, True)


class Torn(httpx2.SyncByteStream):
    """A CSV whose connection is closed before its end, within a line."""

    @override
    def __iter__(self) -> Iterator[bytes]:
        yield b"user,resource\r\na,cpu\r\nb,c"
        raise httpx2.RemoteProtocolError("incomplete chunked read")


@pytest.mark.parametrize(
    ("resources", "queued", "shown"),
    [({}, 0, "nothing so far"), ({}, 7200, "2.00"), ({"a.b/gpu": uses(HOUR)}, 0, "a.b/gpu")],
)
def test_one_job(run: RunCommand, resources: dict[str, Any], queued: float, shown: str) -> None:
    about = {"observedAt": "2026-01-31T12:00:00Z", "currency": None, "cost": None}
    result, script = run(["usage", "train"], ok({**about, "queuedSeconds": queued, "resources": resources}))
    assert script.requests[0].url.path == "/api/v1/namespaces/team/jobs/train/usage"
    assert shown in result.stdout


def test_no_usage_says_so(run: RunCommand) -> None:
    assert "no job has used anything" in run(["usage"], a_page(by=["namespace"]))[0].stdout
