"""The story of a data cache: a sample set is synced, warmed up, read by a job, cleared and deleted.

sample set    ───────── followed from its submission until its deletion is complete ──────▶
sample jobs            warm-up     ┐  sync, which fails first   ┐ clear  ┐ delete
a GenericJob             reader    ┘                            ┘ rmr    ┘
"""

import asyncio
import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx2
import yaml

from app.bundled import bundled_directory
from app.demo.player import DemoError, Player, Say, StoryResult, check_answer
from app.demo.stories import Story

EXAMPLES: Final = "sample-set"
# Directories that the examples name; the demo replaces them with its own.
HOME: Final = "/var/tmp/jobgate-digits"  # noqa: S108
CACHE: Final = "/var/cache/jobgate/digits"
NAME: Final = "digits"
LONGEST: Final = 240.0  # seconds; the maximum duration of the story
POLL: Final = 10  # seconds; the maximum duration of a long poll
FILES: Final = 16
FILE_BYTES: Final = 4 * 2**20  # one block of JuiceFS, which caches smaller files already when they are written
MORE_FILES: Final = 40
GONE: Final = "Gone"
ENDED: Final = ("Succeeded", "Failed")

STORY: Final = Story(
    file=f"{EXAMPLES}/set.yaml",
    shows="a data cache on two nodes: synced, warmed up, read by a job, cleared and deleted",
    ends=GONE,
)
READER: Final = Story(
    file=f"{EXAMPLES}/reader.yaml",
    shows="reads the set through its claim, and compares it with its digests",
    ends="Succeeded",
    logs=(("reader", 0, 1),),
)
Document = dict[str, Any]


def make_data(home: Path) -> None:
    """Write the files that the set contains, and those that are synced into it later."""
    digests = []
    for number in range(FILES):
        path = home / "source" / f"{number % 4}" / f"{number:03}.bin"
        digests.append(f"{_file(path, FILE_BYTES)}  {path.relative_to(home / 'source')}")
    (home / "source" / "SHA256SUMS").write_text("\n".join(digests) + "\n")
    for number in range(MORE_FILES):
        _file(home / "more" / f"{number:03}.bin", FILE_BYTES // 16)


def _file(path: Path, size: int) -> str:
    body = os.urandom(size)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return hashlib.sha256(body).hexdigest()


def example(file: str, home: Path) -> Document:
    """Return a manifest of the examples, with its paths below `home`."""
    text = bundled_directory("examples").joinpath(EXAMPLES, file).read_text()
    document: Document = yaml.safe_load(text.replace(HOME, str(home)).replace(CACHE, str(home / "cache")))
    return document


def figures(view: Mapping[str, Any]) -> str:
    """Return one line with the state and the figures of a sample set."""
    status = view["status"]
    runtime, cache = status["runtime"], status["cache"]
    state = f"deleting: {status['removal'] or 'requested'}" if view["deletedAt"] else status["phase"] or "New"
    line = f"{state:<22} servers {runtime['ready']}/{runtime['wanted']}"
    if cache is not None:
        total, cached = cache["totalBytes"], cache["cachedBytes"]
        share = min(cached / total, 1.0) if total else 0.0
        bar = "#" * round(share * 20)
        line += f"   {_mib(total)} of data   [{bar:<20}] {share:4.0%} cached, {_mib(cached)}"
    why = f"   {status['reason']}: {status['message']}" if status["reason"] else ""
    return line + why


def _is_gone(view: Mapping[str, Any]) -> bool:
    """Whether nothing is left of a deleted set or job; a deleted SampleJob has nothing in the cluster."""
    return view["deletedAt"] is not None and view["status"].get("removal", GONE.lower()) == GONE.lower()


def _mib(size: int) -> str:
    return f"{size / 2**20:5.1f} MiB"


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of a group, which ended the other tasks."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class SampleStory:
    """Plays the story.

    `home` is the directory of data, bucket and caches. `make_secret` creates a Secret in the cluster. `spec` overrides
    fields of the spec of the example.
    """

    def __init__(
        self,
        client: httpx2.AsyncClient,
        namespace: str,
        say: Say,
        home: Path,
        make_secret: Callable[[Document], Awaitable[None]],
        spec: Mapping[str, Any],
    ) -> None:
        self._client = client
        self._base = f"/api/v1/namespaces/{namespace}"
        self._jobs = Player(client, namespace, say)
        self._say = say
        self._home = home
        self._make_secret = make_secret
        self._spec = spec
        self._set: Document = {}
        self._news = asyncio.Condition()

    async def play(self) -> StoryResult:
        started = time.monotonic()
        try:
            async with asyncio.timeout(LONGEST):
                await self._play()
        except TimeoutError:
            raise DemoError(f"{NAME} did not end within {LONGEST:g} s; it is {figures(self._set)}") from None
        except BaseExceptionGroup as group:
            raise _first(group) from group
        took = time.monotonic() - started
        return StoryResult(story=STORY, name=NAME, phase=GONE, message="nothing is left", seconds=took, restarts=0)

    async def _play(self) -> None:
        await asyncio.to_thread(make_data, self._home)
        await self._make_secret(example("secret.yaml", self._home))
        document = example("set.yaml", self._home)
        document["spec"] |= self._spec
        self._set = await self._submit("samplesets", document)
        self._say(NAME, f"submitted: {STORY.shows}")
        async with asyncio.TaskGroup() as group:
            following = group.create_task(self._follow_set())
            await self._until(lambda found: found["status"]["phase"] == "Ready" and bool(found["status"]["cache"]))
            group.create_task(self._read())
            await asyncio.gather(self._run("warm-up.yaml"), self._sync_after_correction())
            await self._until(lambda found: bool(found["status"]["cache"]["whole"]))
            await asyncio.gather(self._run("clear.yaml"), self._run("rmr.yaml"))
            await self._until(lambda found: found["status"]["cache"]["cachedBytes"] == 0)
            await self._call("DELETE", f"/samplesets/{NAME}")
            await following

    async def _submit(self, resource: str, document: Document) -> Document:
        """Create the resource. One of the same name, from an interrupted run, is deleted first."""
        answer = await self._client.post(f"{self._base}/{resource}", json=document)
        if answer.status_code == httpx2.codes.CONFLICT:
            name = document["metadata"]["name"]
            self._say(name, "exists from an earlier run: deleting it first")
            await self._client.delete(f"{self._base}/{resource}/{name}")
            await self._until_gone(resource, name)
            answer = await self._client.post(f"{self._base}/{resource}", json=document)
        return check_answer(answer)

    async def _until_gone(self, resource: str, name: str) -> None:
        etag = ""
        while (answer := await self._poll(resource, name, etag)) is not None:
            etag = answer.headers.get("ETag", etag)

    async def _follow_set(self) -> None:
        """Print every change of the sample set until it is gone."""
        etag, printed = "", ""
        while (answer := await self._poll("samplesets", NAME, etag)) is not None:
            if answer.status_code == httpx2.codes.NOT_MODIFIED:
                continue
            etag = answer.headers["ETag"]
            async with self._news:
                self._set = check_answer(answer)
                self._news.notify_all()
            if (line := figures(self._set)) != printed:
                self._say(NAME, line)
                printed = line
        self._say(NAME, "gone, with its servers, its volume and the labels of its nodes")

    async def _until(self, holds: Callable[[Document], bool]) -> None:
        async with self._news:
            await self._news.wait_for(lambda: bool(self._set) and holds(self._set))

    async def _read(self) -> None:
        """Run the job that reads the set, and print which job mounts the set."""
        reading = asyncio.gather(self._jobs.play(READER), self._print_dependents())
        result, _ = await reading
        if not result.as_expected:
            raise DemoError(f"{result.name} ended {result.phase}: {result.message}")

    async def _print_dependents(self) -> None:
        while True:
            jobs = (await self._call("GET", f"/samplesets/{NAME}/dependents"))["jobs"]
            if jobs:
                self._say(NAME, "is mounted by " + ", ".join(f"{job['name']} ({job['kind']})" for job in jobs))
                return
            await asyncio.sleep(0.05)

    async def _run(self, file: str) -> None:
        job = await self._submit("samplejobs", example(file, self._home))
        await self._follow_to_end(job["name"], "Succeeded")

    async def _sync_after_correction(self) -> None:
        """Sync from a wrong source, which fails, and then correct the source, which starts the job again."""
        document = example("sync.yaml", self._home)
        right = document["spec"]["syncOptions"]["source"]
        document["spec"]["syncOptions"]["source"] = right.replace("/more/", "/mroe/")
        job = await self._submit("samplejobs", document)
        await self._follow_to_end(job["name"], "Failed")
        self._say(job["name"], f"correcting its source: {right}")
        patch = {"spec": {"syncOptions": {"source": right}}}
        headers = {"Content-Type": "application/merge-patch+json"}
        await self._call("PATCH", f"/samplejobs/{job['name']}", json=patch, headers=headers)
        await self._follow_to_end(job["name"], "Succeeded")

    async def _follow_to_end(self, name: str, wanted: str) -> None:
        """Print the phases of the job until it has ended in the wanted phase."""
        etag, printed, phase = "", "", ""
        while phase != wanted:
            answer = await self._poll("samplejobs", name, etag)
            if answer is None:
                raise DemoError(f"{name} is gone")
            if answer.status_code == httpx2.codes.NOT_MODIFIED:
                continue
            etag, job = answer.headers["ETag"], check_answer(answer)
            status = job["status"]
            phase = status["phase"]
            line = f"{phase or 'New':<10} {status['type']:<7} {status['message']}".rstrip()
            if line != printed:
                self._say(name, line)
                printed = line
            if phase in ENDED and phase != wanted and status["observedGeneration"] == job["generation"]:
                raise DemoError(f"{name} ended {phase}: {status['message']}")

    async def _poll(self, resource: str, name: str, etag: str) -> httpx2.Response | None:
        """Return the answer to a long poll of the object, or None if the object is gone."""
        headers = {"If-None-Match": etag, "Prefer": f"wait={POLL}"} if etag else {}
        answer = await self._client.get(f"{self._base}/{resource}/{name}", headers=headers)
        return None if answer.status_code == httpx2.codes.OK and _is_gone(answer.json()) else answer

    async def _call(self, method: str, path: str, **given: Any) -> Document:
        return check_answer(await self._client.request(method, self._base + path, **given))
