"""An independent record of all pod uids of each attempt in a namespace, from a raw watch in a thread."""

import asyncio
import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import aiohttp

from tests.support.clusters.kube import Cluster, connect
from tests.support.waiting import until

SEEN_WITHIN = 60.0
JOB_UID = "jobgate.dev/job-uid"


class Attempt(NamedTuple):
    job: str
    task: str
    rank: int
    number: int


class PodWatcher:
    """Watches the pods of a namespace without a gap, from one list on. A watch that cannot resume fails the test."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._version = ""
        self._listed = threading.Event()
        self._error: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self.uids: dict[Attempt, set[str]] = defaultdict(set)

    def start(self) -> None:
        self._thread.start()
        assert self._listed.wait(60)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        if self._error is not None:
            raise self._error

    def doubles(self) -> Mapping[Attempt, set[str]]:
        return {attempt: uids for attempt, uids in self.uids.items() if len(uids) > 1}

    def attempts(self, job: str) -> dict[tuple[str, int], int]:
        """Return the number of attempts of each rank that had a pod."""
        counted: dict[tuple[str, int], int] = defaultdict(int)
        for attempt in self.uids:
            if attempt.job == job:
                counted[attempt.task, attempt.rank] += 1
        return counted

    async def until_seen(self, job: str, wanted: Mapping[tuple[str, int], int]) -> None:
        """Wait until this many attempts of each rank had a pod: the watch can be behind the status of the job."""
        what = f"{dict(wanted)} of {job}"
        await until(lambda: self.attempts(job), lambda found: found == wanted, what=what, within=SEEN_WITHIN)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._until_stopped())
            self._loop.run_until_complete(asyncio.sleep(0))  # sockets close one turn after their transports
        except BaseException as error:  # noqa: BLE001 - carried to the test's thread
            self._error = error
        finally:
            self._listed.set()
            self._loop.close()

    async def _until_stopped(self) -> None:
        self._stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            following = group.create_task(self._follow())
            stopping = group.create_task(self._stop.wait())
            await asyncio.wait({following, stopping}, return_when=asyncio.FIRST_COMPLETED)
            following.cancel()
            stopping.cancel()

    async def _follow(self) -> None:
        async with connect(self._cluster) as api:
            page = (await api.get(self._pods, labelSelector=JOB_UID)).ok()
            self._version = page["metadata"]["resourceVersion"]
            for pod in page["items"]:
                self._note(pod)
            self._listed.set()
            while True:
                try:
                    await self._watch(api)
                except (aiohttp.ClientError, TimeoutError):  # resuming from the same version leaves no gap
                    await asyncio.sleep(0.1)

    async def _watch(self, api: Any) -> None:
        options = {"labelSelector": JOB_UID, "allowWatchBookmarks": "true", "timeoutSeconds": "100"}
        async with api.watch(self._pods, resourceVersion=self._version, **options) as watch:
            async for line in watch.response.content:
                if not line.endswith(b"\n"):
                    return  # the connection ended inside an event, which the next watch repeats
                event = Watched.read(line)
                assert event.type in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"), line
                self._version = event.object["metadata"]["resourceVersion"]
                if event.type != "BOOKMARK":
                    self._note(event.object)

    def _note(self, pod: Mapping[str, Any]) -> None:
        labels = pod["metadata"]["labels"]
        attempt = Attempt(
            labels[JOB_UID],
            labels["jobgate.dev/task"],
            int(labels["jobgate.dev/task-rank"]),
            int(labels["jobgate.dev/attempt"]),
        )
        self.uids[attempt].add(pod["metadata"]["uid"])


class Watched(NamedTuple):
    type: str
    object: Any

    @classmethod
    def read(cls, line: bytes) -> "Watched":
        event = json.loads(line)
        return cls(event["type"], event["object"])


@contextmanager
def pod_watcher(cluster: Cluster, namespace: str) -> Iterator[PodWatcher]:
    watcher = PodWatcher(cluster, namespace)
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.stop()
