"""Both clients send the same requests and understand the same answers. A script stands in for the gateway."""

import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import msgspec
import pytest

from jobgate.client import (
    AsyncClient,
    Client,
    ConflictError,
    Goal,
    InvalidRequestError,
    ProblemError,
    PurgedError,
    RetryPolicy,
    UnavailableError,
    UnreachableError,
    WaitTimeoutError,
)
from jobgate.client.asynchronous import objects
from jobgate.client.types import Job
from tests.client.scripted import Answer, Script, job, ok, page, problem, state

MANIFEST = {"kind": "GenericJob", "metadata": {"name": "tour"}}
Run = Callable[..., Awaitable[tuple[Any, Script]]]


async def collect(value: Any) -> Any:
    """The result of a call of either client; an iterator becomes a list."""
    if inspect.isawaitable(value):
        return await value
    if hasattr(value, "__aiter__"):
        return [item async for item in value]
    return list(value) if hasattr(value, "__next__") else value


@pytest.fixture(params=["asynchronous", "synchronous"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a call of one client on a script: `run(lambda client: …, *answers)`."""

    async def no_wait(_: float) -> None:
        """Repeat at once."""

    monkeypatch.setattr("jobgate.client.asynchronous.client.asyncio.sleep", no_wait)
    monkeypatch.setattr("jobgate.client.synchronous.client.time.sleep", lambda _: None)

    async def asynchronous(act: Callable[[Any], Any], *answers: Answer) -> tuple[Any, Script]:
        script = Script(*answers)
        async with AsyncClient("http://gateway", token="jg_x", namespace="team", transport=script.transport) as client:
            return await collect(act(client)), script

    async def synchronous(act: Callable[[Any], Any], *answers: Answer) -> tuple[Any, Script]:
        script = Script(*answers)
        with Client("http://gateway", token="jg_x", namespace="team", transport=script.transport) as client:
            return await collect(act(client)), script

    return asynchronous if request.param == "asynchronous" else synchronous


async def test_a_submission_that_is_repeated_carries_the_same_key(run: Run) -> None:
    submitted, script = await run(
        lambda client: client.jobs.submit(MANIFEST),
        httpx2.ReadError("lost"),
        problem(503, "Unavailable"),
        ok(job(), 201),
    )
    assert submitted.name == "tour"
    assert submitted.status.aggregate.pending == 2
    assert [request.url.path for request in script.requests] == ["/api/v1/namespaces/team/jobs"] * 3
    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 1
    assert script.requests[0].headers["Authorization"] == "Bearer jg_x"
    assert json.loads(script.requests[2].content) == MANIFEST


async def test_text_of_a_manifest_is_sent_unchanged(run: Run) -> None:
    text = "# mine\nkind: GenericJob\n"
    _, script = await run(lambda client: client.jobs.submit(text, namespace="a b"), ok(job(), 201))
    assert script.requests[0].content == text.encode()
    assert script.requests[0].headers["Content-Type"] == "application/yaml"
    assert script.requests[0].url.raw_path == b"/api/v1/namespaces/a%20b/jobs"


TWO: Any = [{"kind": "GenericJob", "metadata": {"name": name}} for name in ("tour", "again")]
TWO_TEXT = "# mine\nkind: GenericJob\n---\nkind: GenericJob\n"
STORED = {"status": 201, "object": job(), "problem": None}


@pytest.mark.parametrize(
    ("manifests", "media_type", "content"),
    [
        (TWO, "application/json", msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": TWO})),
        (TWO_TEXT, "application/yaml", TWO_TEXT.encode()),
    ],
    ids=["contents", "text"],
)
async def test_a_batch_has_a_result_for_each_manifest(
    run: Run, manifests: Any, media_type: str, content: bytes
) -> None:
    fault = {"type": "urn:NameTaken", "title": "", "status": 409, "detail": "it is taken", "code": "NameTaken"}
    (stored, refused), script = await run(
        lambda client: client.jobs.submit_batch(manifests),
        httpx2.ReadError("lost"),
        ok({"items": [STORED, {"status": 409, "object": None, "problem": fault}]}),
    )
    assert (stored.status, stored.object.name, stored.problem) == (201, "tour", None)
    assert (refused.status, refused.object, refused.problem.code) == (409, None, "NameTaken")
    first, second = script.requests
    assert (first.method, str(first.url)) == ("POST", "http://gateway/api/v1/namespaces/team/jobs/batch?atomic=false")
    assert (first.content, first.headers["Content-Type"]) == (content, media_type)
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]


async def test_an_atomic_batch_is_refused_as_a_whole(run: Run) -> None:
    fault = {"pointer": "/items/1/spec", "code": "Required", "detail": "the field is missing"}
    with pytest.raises(InvalidRequestError, match="/items/1/spec"):
        await run(lambda client: client.jobs.submit_batch(TWO, atomic=True), problem(422, "InvalidManifest", fault))
    _, script = await run(
        lambda client: client.sample_sets.submit_batch(TWO, atomic=True, namespace="other", key="once"),
        ok({"items": []}),
    )
    (request,) = script.requests
    assert (request.url.path, dict(request.url.params)) == (
        "/api/v1/namespaces/other/samplesets/batch",
        {"atomic": "true"},
    )
    assert request.headers["Idempotency-Key"] == "once"


async def test_a_cancel_is_not_repeated_when_its_answer_is_lost(run: Run) -> None:
    with pytest.raises(UnreachableError):
        await run(lambda client: client.jobs.cancel("tour", reason="enough"), httpx2.ReadError("lost"))
    _, script = await run(lambda client: client.jobs.cancel("tour"), httpx2.ConnectError("refused"), ok(job()))
    assert script.is_over


async def test_a_problem_becomes_an_exception_that_carries_it(run: Run) -> None:
    fault = {"pointer": "/spec/x", "code": "UnknownField", "detail": "there is no field x", "accepted": "y"}
    with pytest.raises(InvalidRequestError) as raised:
        await run(lambda client: client.jobs.submit(MANIFEST), problem(422, "InvalidManifest", fault))
    assert (raised.value.status, raised.value.code) == (422, "InvalidManifest")
    assert [(error.pointer, error.accepted) for error in raised.value.errors] == [("/spec/x", "y")]
    assert "/spec/x: there is no field x" in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "expected", "text"),
    [
        (problem(409, "NameTaken"), ConflictError, "it is NameTaken"),
        (problem(410, "Purged"), PurgedError, "it is Purged"),
        (httpx2.Response(502, content=b"<h1>Bad\n gateway</h1>"), UnavailableError, "<h1>Bad gateway</h1>"),
        (httpx2.Response(418), ProblemError, "the answer is empty"),
    ],
)
async def test_every_error_answer_has_an_exception(
    run: Run, answer: httpx2.Response, expected: type[ProblemError], text: str
) -> None:
    with pytest.raises(expected, match=text):
        await run(lambda client: client.jobs.pause("tour"), answer)


async def test_a_refused_request_is_repeated_until_the_attempts_are_used_up() -> None:
    script = Script(*[problem(429, "TooManyOpen", Retry_After="0")] * 2)
    with (
        Client("http://gateway", transport=script.transport, retries=RetryPolicy(attempts=2)) as client,
        pytest.raises(ProblemError, match="TooManyOpen"),
    ):
        client.jobs.get("tour")
    assert script.is_over


async def test_a_list_reads_all_pages(run: Run) -> None:
    jobs, script = await run(
        lambda client: client.jobs.list(namespace="*", phase=["Failed", "TimedOut"], label_selector="a=b"),
        page([job(name="one"), job(name="two")], "more"),
        page([job(name="three")]),
    )
    assert [one.name for one in jobs] == ["one", "two", "three"]
    first, second = (request.url for request in script.requests)
    assert first.path == "/api/v1/jobs"
    assert first.params.get_list("phase") == ["Failed", "TimedOut"]
    assert first.params["labelSelector"] == "a=b"
    assert "pageToken" not in first.params
    assert second.params["pageToken"] == "more"


async def test_summaries_are_read_with_the_filters_of_a_list(run: Run) -> None:
    rows, script = await run(
        lambda client: client.sample_jobs.summaries(set="imagenet", created_after=None), page([], "more"), page([])
    )
    assert rows == []
    assert [dict(request.url.params) for request in script.requests] == [
        {"view": "summary", "set": "imagenet"},
        {"view": "summary", "set": "imagenet", "pageToken": "more"},
    ]


async def test_a_job_can_be_replaced_by_what_get_returned(run: Run) -> None:
    stored = msgspec.convert(job(), Job)
    _, script = await run(lambda client: client.jobs.replace(stored, stored, if_match='"7"'), ok(job()))
    assert (script.requests[0].method, script.requests[0].headers["If-Match"]) == ("PUT", '"7"')
    assert json.loads(script.requests[0].content)["apiVersion"] == job()["apiVersion"]


async def test_a_wait_polls_by_uid_with_the_tag_until_the_job_has_ended(run: Run) -> None:
    ended, script = await run(
        lambda client: client.jobs.wait("tour"),
        ok(state("Pending"), ETag='"1"'),
        httpx2.Response(304),
        ok(state("Running"), ETag='"2"'),
        ok(state("Failed", message="worker[0]: exit code 1"), ETag='"3"'),
    )
    assert ended.status.message == "worker[0]: exit code 1"
    first, second, _, last = script.requests
    assert first.url.path == "/api/v1/namespaces/team/jobs/tour/status"
    assert "If-None-Match" not in first.headers
    assert second.url.path == f"/api/v1/jobs/{state()['uid']}/status"
    assert (second.headers["If-None-Match"], second.headers["Prefer"]) == ('"1"', "wait=30")
    assert last.headers["If-None-Match"] == '"2"'


async def test_a_wait_survives_a_restart_of_the_gateway(run: Run) -> None:
    outage = [httpx2.ConnectError("refused")] * 12
    ended, script = await run(
        lambda client: client.jobs.wait("tour"), ok(state("Running"), ETag='"1"'), *outage, ok(state("Succeeded"))
    )
    assert ended.status.phase == "Succeeded"
    assert script.is_over


async def test_a_wait_for_a_gateway_that_never_answered_fails(run: Run) -> None:
    with pytest.raises(UnreachableError):
        await run(lambda client: client.jobs.wait("tour"), *[httpx2.ConnectError("refused")] * 5)


async def test_a_wait_for_running_ends_when_the_job_runs(run: Run) -> None:
    running, _ = await run(lambda client: client.jobs.wait("tour", until=Goal.RUNNING), ok(state("Running")))
    assert running.status.phase == "Running"


async def test_a_wait_that_takes_too_long_carries_the_last_status(run: Run) -> None:
    with pytest.raises(WaitTimeoutError) as raised:
        await run(lambda client: client.jobs.wait("tour", timeout=0), ok(state("Pending"), ETag='"1"'))
    assert raised.value.last.status.phase == "Pending"
    with pytest.raises(WaitTimeoutError, match="tour is New after 0 s"):
        await run(lambda client: client.jobs.wait("tour", timeout=0), ok(state(""), ETag='"1"'))


async def test_a_log_is_yielded_line_by_line(run: Run) -> None:
    lines, script = await run(
        lambda client: client.jobs.logs("tour", rank=1, tail=5, since=0.5), httpx2.Response(200, content=b"a\nb\n")
    )
    assert lines == ["a", "b"]
    assert dict(script.requests[0].url.params) == {"rank": "1", "tailLines": "5", "sinceSeconds": "1"}


async def test_an_error_answer_to_a_stream_is_a_problem(run: Run) -> None:
    with pytest.raises(ProblemError, match="NotFound"):
        await run(lambda client: client.jobs.logs("tour"), problem(404, "NotFound"))


@pytest.mark.parametrize(
    ("act", "result"),
    [
        (lambda usage: usage.csv(["user"]), "user,resource\r\na,cpu\r\n"),
        (lambda usage: usage.csv_lines(["user"]), ["user,resource", "a,cpu"]),
    ],
)
async def test_a_csv_is_asked_for_again_until_it_begins(run: Run, act: Callable[[Any], Any], result: Any) -> None:
    failures = problem(503, "Overloaded"), httpx2.ReadTimeout("slow"), problem(429, "TooManyOpen", Retry_After="1")
    answer = httpx2.Response(200, content=b"user,resource\r\na,cpu\r\n")
    found, script = await run(lambda client: act(client.usage), *failures, answer)
    assert (found, len(script.requests)) == (result, 4)
    with pytest.raises(ProblemError, match="InvalidParameter"):
        await run(lambda client: act(client.usage), problem(400, "InvalidParameter"))


@pytest.mark.parametrize(
    ("act", "body"),
    [
        (lambda jobs: jobs.scale("tour", 3, reason="faster"), {"replicas": 3, "reason": "faster"}),
        (lambda jobs: jobs.scale("tour", 3, task="worker"), {"replicas": 3, "task": "worker"}),
        (lambda jobs: jobs.scale("tour", {"a": 1, "b": 2}), {"tasks": {"a": 1, "b": 2}}),
        (lambda jobs: jobs.retry("tour", name="again"), {"name": "again"}),
        (lambda jobs: jobs.pause("tour"), {}),
    ],
)
async def test_the_bodies_of_actions(run: Run, act: Callable[[Any], Any], body: dict[str, Any]) -> None:
    _, script = await run(lambda client: act(client.jobs), ok(job()))
    assert json.loads(script.requests[0].content) == body


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        found = inspect.getmembers(kind, inspect.isfunction)
        return {name: list(inspect.signature(method).parameters) for name, method in found if not name.startswith("_")}

    assert methods(objects.AsyncJobs) == methods(type(Client("http://gateway").jobs))
