"""Runs the demo: starts a development server, plays all stories at once, and prints a table of their results."""

import asyncio
import time
from collections.abc import Awaitable, Coroutine, Sequence
from pathlib import Path

import httpx2

from app.demo.cache import home_of, play_cache, why_no_cache
from app.demo.player import DemoError, Player, StoryResult
from app.demo.queue import FILE as QUEUE
from app.demo.queue import make_queue
from app.demo.sample_story import STORY as CACHE
from app.demo.stories import QUEUED, STORIES, Story
from app.k8s.connection import connect
from app.k8s.errors import KubeError
from app.loops.controller_settings import QueueMode
from app.running import dev, hints
from app.running.dev import NotStarted
from app.settings import Settings

NAMESPACE = "default"
CLIENT_TIMEOUT = 30.0  # seconds; longer than a long poll
LONGEST_WITH_PULL = 900.0  # seconds for a story on a cluster that first pulls the image of the examples
INTERRUPTED = 130  # as a shell reports Ctrl-C


async def run(settings: Settings, data_dir: Path, *, stop: asyncio.Event, keep_serving: bool) -> int:
    """Play all stories; return the exit code, 0 if each story ended as expected."""
    ready: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
    print("starting Postgres, a cluster and the gateway …", flush=True)  # noqa: T201
    started = time.monotonic()
    async with asyncio.TaskGroup() as group:
        allowing = settings.model_copy(
            update={"file_directories": (*settings.file_directories, str(home_of(data_dir)))}
        )
        serving = group.create_task(
            dev.run(allowing, data_dir, on_ready=lambda *found: ready.set_result(found), stop=stop)
        )
        serving.add_done_callback(lambda _: ready.cancel())
        url, kubeconfig = await ready
        print(f"jobgate is ready at {url} ({time.monotonic() - started:.1f} s)", flush=True)  # noqa: T201
        print(hints.dashboard_line(url), flush=True)  # noqa: T201
        print(f"{hints.kubeconfig_line(kubeconfig)}\n", flush=True)  # noqa: T201
        code = await _unless_stopped(_play_all(url, kubeconfig, settings, data_dir), stop)
        if keep_serving and code != INTERRUPTED:
            print(hints.of_demo(url, kubeconfig), flush=True)  # noqa: T201
            await stop.wait()
        stop.set()
    return code


async def play_against(url: str, token: str | None, stop: asyncio.Event) -> int:
    """Play the stories of jobs against a running gateway; return the exit code, 0 if each story ended as expected."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return await _unless_stopped(_play_where_a_gateway_answers(url, headers), stop)


async def _play_where_a_gateway_answers(url: str, headers: dict[str, str]) -> int:
    try:
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=CLIENT_TIMEOUT) as client:
            await client.get("/livez")
            return await _play_stories(client, STORIES, longest=LONGEST_WITH_PULL)
    except (httpx2.TransportError, httpx2.InvalidURL) as error:
        raise NotStarted(f"no gateway answers at {url}: {str(error) or type(error).__name__}") from error


async def _unless_stopped(playing: Coroutine[None, None, int], stop: asyncio.Event) -> int:
    """Play to the end and return the exit code, or cancel as soon as `stop` is set and return INTERRUPTED."""
    async with asyncio.TaskGroup() as group:
        played = group.create_task(playing)
        stopped = group.create_task(stop.wait())
        await asyncio.wait({played, stopped}, return_when=asyncio.FIRST_COMPLETED)
        played.cancel()
        stopped.cancel()
    return INTERRUPTED if played.cancelled() else played.result()


async def _play_all(url: str, kubeconfig: str, settings: Settings, data_dir: Path) -> int:
    no_cache = why_no_cache(settings)
    no_queue = await _make_queue(kubeconfig, settings)
    stories = STORIES if no_queue else (*STORIES, *QUEUED)
    async with httpx2.AsyncClient(base_url=url, timeout=CLIENT_TIMEOUT) as client:
        code = await _play_stories(client, stories, cache_dir=None if no_cache else data_dir, ends_former=True)
    for file, why in ((CACHE.file, no_cache), (QUEUE, no_queue)):
        if why:
            print(f"-- {file} was skipped: {why}", flush=True)  # noqa: T201
    return code


async def _make_queue(kubeconfig: str, settings: Settings) -> str:
    """Make the queue of the examples; return why there is none, or an empty string."""
    if settings.queues is QueueMode.OFF:
        return "JOBGATE_QUEUES is off"
    try:
        async with await connect(kubeconfig=kubeconfig, context=settings.kube_context) as api:
            return await make_queue(api, NAMESPACE)
    except KubeError as error:
        raise NotStarted(f"the queue of the examples cannot be made: {error}") from error


async def _play_stories(
    client: httpx2.AsyncClient,
    stories: Sequence[Story],
    *,
    cache_dir: Path | None = None,
    longest: float | None = None,
    ends_former: bool = False,
) -> int:
    """Play stories at once, that of the cache only with a directory for it, and print a table of the results.

    With `ends_former`, live jobs of an interrupted demo are cancelled first. On a gateway that others use, they may be
    those of another user.
    """
    printer = _Printer(time.monotonic())
    results: list[StoryResult] = []
    failures: list[str] = []
    player = Player(client, NAMESPACE, printer.say, longest=longest)

    async def play(story: Story, playing: Awaitable[StoryResult]) -> None:
        try:
            results.append(await playing)
        except (DemoError, NotStarted, KubeError, httpx2.HTTPError) as error:
            failures.append(f"{story.file}: {str(error) or type(error).__name__}")

    if ends_former:
        await player.end_former(stories)
    async with asyncio.TaskGroup() as group:
        for story in stories:
            group.create_task(play(story, player.play(story)))
        if cache_dir is not None:
            group.create_task(play(CACHE, play_cache(client, NAMESPACE, printer.say, cache_dir)))
    _print_table(results, failures)
    return 0 if not failures and all(result.as_expected for result in results) else 1


class _Printer:
    """Prints lines with the time since the start and the name of the job."""

    def __init__(self, started: float) -> None:
        self._started = started

    def say(self, name: str, line: str) -> None:
        print(f"{time.monotonic() - self._started:6.1f} s  {name:<21} {line}", flush=True)  # noqa: T201


def _print_table(results: list[StoryResult], failures: list[str]) -> None:
    lines = ["", f"   {'example':<22} {'ended':<10} {'expected':<10} {'restarts':>8} {'seconds':>8}"]
    for result in sorted(results, key=lambda result: result.name):
        mark = "ok" if result.as_expected else "!!"
        lines.append(
            f"{mark} {result.name:<22} {result.phase:<10} {result.story.ends:<10} {result.restarts:>8} "
            f"{result.seconds:>8.1f}   {result.message}"
        )
    lines += [f"!! {failure}" for failure in failures]
    print("\n".join(lines), flush=True)  # noqa: T201
