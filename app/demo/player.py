"""Plays stories against a gateway, and prints what happens line by line."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx2
import yaml

from app.bundled import bundled_directory
from app.demo.stories import Act, Moment, Story
from app.running import hints

TERMINAL = {"Succeeded", "Failed", "TimedOut", "Cancelled"}
LONGEST = 120.0  # seconds; the maximum duration of one story
POLL = 10  # seconds; the maximum duration of a long poll

Say = Callable[[str, str], None]


class DemoError(Exception):
    """A story did not go as expected, such as by an error answer of the gateway."""


class NameTakenError(DemoError):
    """Another object has a name that a job needs. The message says which one, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryResult:
    """The result of a story."""

    story: Story
    name: str
    phase: str
    message: str
    seconds: float
    restarts: int

    @property
    def as_expected(self) -> bool:
        return self.phase == self.story.ends


class Player:
    """Plays stories. `client` sends requests to the gateway; `say` prints a line about a job.

    `longest` is the maximum duration of a story in seconds, by default LONGEST.
    """

    def __init__(self, client: httpx2.AsyncClient, namespace: str, say: Say, *, longest: float | None = None) -> None:
        self._longest = LONGEST if longest is None else longest
        self._client = client
        self._jobs = f"/api/v1/namespaces/{namespace}/jobs"
        self._say = say
        self._moments: set[Moment] = set()
        self._over: set[str] = set()
        self._news = asyncio.Condition()

    async def end_former(self, stories: Iterable[Story]) -> None:
        """Cancel the live jobs of these stories that an interrupted demo has left, and wait until they have ended."""
        async with asyncio.TaskGroup() as group:
            for story in stories:
                group.create_task(self._end_former(yaml.safe_load(_manifest_of(story))["metadata"]))

    async def _end_former(self, metadata: dict[str, Any]) -> None:
        name = metadata["name"]
        answer = await self._client.get(f"{self._jobs}/{name}")
        former: dict[str, Any] = answer.json() if answer.is_success else {}
        # A job that only has the name of an example is one of the user.
        if former.get("labels") != metadata["labels"] or former["status"]["phase"] in TERMINAL:
            return
        self._say(name, "is live from an interrupted demo: cancelling it first")
        with suppress(DemoError):  # its story then reports that the name is in use
            await self._call("POST", f"/{name}/cancel", json={"reason": "a new demo begins"})
            async for _ in self._changes(name, former["uid"]):
                pass

    async def play(self, story: Story) -> StoryResult:
        """Submit the job at its moment, carry out the acts of the story, and follow the job to its end."""
        manifest = _manifest_of(story)
        try:
            if story.after is not None:
                await self._wait_for(story.after)
            return await self._play(story, manifest)
        finally:
            async with self._news:
                self._over.add(yaml.safe_load(manifest)["metadata"]["name"])
                self._news.notify_all()

    async def _wait_for(self, moment: Moment) -> None:
        async with self._news:
            await self._news.wait_for(lambda: moment in self._moments or moment.job in self._over)
        if moment not in self._moments:
            raise DemoError(f"it begins when {moment.job} is {moment.state}, which did not happen")

    async def _play(self, story: Story, manifest: bytes) -> StoryResult:
        started = time.monotonic()
        try:
            job = await self._call("POST", "", content=manifest, headers={"Content-Type": "application/yaml"})
        except NameTakenError as error:
            raise DemoError(await self._explain(error, yaml.safe_load(manifest)["metadata"]["name"])) from error
        name, uid = job["name"], job["uid"]
        self._say(name, f"submitted: {story.shows}")
        job = await self._follow(name, uid, list(story.acts))
        replicas = await self._call("GET", f"/{name}/replicas")
        for task, rank, attempt in story.logs:
            await self._show_log(name, task, rank, attempt)
        await self._show_usage(name)
        return StoryResult(
            story=story,
            name=name,
            phase=job["status"]["phase"],
            message=job["status"]["message"],
            seconds=time.monotonic() - started,
            restarts=sum(replica["restartCount"] for replica in replicas["items"]),
        )

    async def _explain(self, error: NameTakenError, name: str) -> str:
        """Return one line that says which job has the name of an example, and how to end it."""
        answer = await self._client.get(f"{self._jobs}/{name}")
        phase = answer.json()["status"]["phase"] if answer.is_success else None
        if phase is None or phase in TERMINAL:
            return str(error)
        command = hints.cancel(name, str(self._client.base_url).rstrip("/"))
        return (
            f"the job {name} is still live ({phase}), such as from an interrupted demo. End it with `{command}` "
            "while the gateway runs, or wait until it has ended; then run the demo again"
        )

    async def _changes(self, name: str, uid: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the job at each change, by long polls. The last one has ended."""
        etag, line, deadline = "", "", time.monotonic() + self._longest
        while time.monotonic() < deadline:
            answer = await self._client.get(
                f"{self._jobs}/{name}", headers={"If-None-Match": etag, "Prefer": f"wait={POLL}"}
            )
            if answer.status_code == httpx2.codes.NOT_MODIFIED:
                continue
            job: dict[str, Any] = check_answer(answer)
            etag = answer.headers["ETag"]
            if job["uid"] != uid:
                raise DemoError(f"{name} is another job now")
            yield job
            line = _line(job["status"])
            if job["status"]["phase"] in TERMINAL:
                return
        raise DemoError(f"{name} has not ended within {self._longest:g} s; it is {line}")

    async def _follow(self, name: str, uid: str, acts: list[Act]) -> dict[str, Any]:
        """Follow the job to its end, and print every change."""
        printed, job = "", dict[str, Any]()
        async for job in self._changes(name, uid):
            line = _line(job["status"])
            if line != printed:
                self._say(name, line)
                printed = line
            await self._note(name, job["status"])
            if acts and job["status"]["phase"] == acts[0].phase:
                act = acts.pop(0)
                self._say(name, " ".join(["request:", act.action, *(f"{k}={v}" for k, v in act.body.items())]))
                await self._call("POST", f"/{name}/{act.action}", json=act.body)
        return job

    async def _note(self, name: str, status: dict[str, Any]) -> None:
        """Let the stories begin that wait for this moment."""
        states = [status["phase"], *(reason["code"] for reason in status["pendingReasons"])]
        async with self._news:
            self._moments.update(Moment(job=name, state=state) for state in states)
            self._news.notify_all()

    async def _show_log(self, name: str, task: str, rank: int, attempt: int) -> None:
        query: dict[str, str | int] = {"task": task, "rank": rank, "attempt": attempt, "tailLines": 3}
        answer = await self._client.get(f"{self._jobs}/{name}/logs", params=query)
        if answer.is_error:
            self._say(name, f"  {task}[{rank}] attempt {attempt}: no log ({answer.json().get('detail')})")
            return
        for line in answer.text.splitlines():
            self._say(name, f"  {task}[{rank}] attempt {attempt} | {line}")
        if answer.headers.get("Jobgate-Log-Source") == "kept" and attempt < int(
            answer.headers["Jobgate-Newest-Attempt"]
        ):
            size = answer.headers["Jobgate-Log-Size"]
            self._say(name, f"  {task}[{rank}] attempt {attempt}: its pod is gone, and its log is kept: {size} bytes")

    async def _show_usage(self, name: str) -> None:
        usage = await self._call("GET", f"/{name}/usage")
        uses = usage["resources"].get("pods", {})
        parts = [f"{seconds:.1f} s {use}" for use, seconds in uses.items() if seconds and use != "total"]
        self._say(name, f"  pods: {', '.join(parts) or 'none'}; in queue: {usage['queuedSeconds']:.1f} s")

    async def _call(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        return check_answer(await self._client.request(method, self._jobs + path, **given))


def _manifest_of(story: Story) -> bytes:
    return bundled_directory("examples").joinpath(story.file).read_bytes()


def check_answer(answer: httpx2.Response) -> dict[str, Any]:
    """Return the body of an answer, or raise DemoError if it is an error."""
    is_problem = answer.headers.get("Content-Type") == "application/problem+json"
    if is_problem and (problem := answer.json())["code"] == "NameTaken":
        raise NameTakenError("; ".join(f"{error['detail']}: {error['accepted']}" for error in problem["errors"]))
    if answer.is_error:
        raise DemoError(
            f"{answer.request.method} {answer.request.url.path} returned {answer.status_code}: {answer.text}"
        )
    body: dict[str, Any] = answer.json()
    return body


def _line(status: dict[str, Any]) -> str:
    counts = "  ".join(f"{count} {phase}" for phase, count in status["aggregate"].items() if count)
    why = "; ".join(f"{reason['code']}: {reason['message']}" for reason in status["pendingReasons"][:1])
    words = why or status["message"]
    return f"{status['phase']:<10} {counts:<28} {words}".rstrip()
