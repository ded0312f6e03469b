"""Submit and poll: operations per second on both sides, alternating, and their ratio."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import httpx2

from bench.measuring.bodies import NUMBER, REPLICAS, batch_job, encode, equal_bodies, generic_job, pod
from bench.measuring.client import LoadClient, Measured, Target
from bench.measuring.kubernetes import ControlPlane
from bench.measuring.report import Pairs

SUBMITTED = "bench-submit"
POLLED = "bench-poll"
_JOBS = f"/api/v1/namespaces/{SUBMITTED}/jobs"
_BATCH = f"/apis/batch/v1/namespaces/{SUBMITTED}/jobs"
_POLLED_JOBS = 50  # enough that neither side serves one cached answer

Run: TypeAlias = Callable[[], Awaitable[Measured]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The number of runs of each side, and the seconds of each."""

    pairs: int
    seconds: float


async def in_turn(count: int, runs: Sequence[Run]) -> list[list[Measured]]:
    """Run A B, B A, A B ..., so that a drift of the machine affects all sides equally."""
    found: list[list[Measured]] = [[] for _ in runs]
    for turn in range(count):
        order = list(range(len(runs)))
        for index in order if turn % 2 == 0 else reversed(order):
            found[index].append(await runs[index]())
    return found


def submissions(ours: Target, theirs: Target | None, *, batch: int = 0) -> tuple[bytes, bytes | None]:
    """The request of each side, of equal size for each job, with different names each time.

    With `batch`, the request to jobgate has this number of jobs. Kubernetes has no such request.
    """
    mine, other = equal_bodies(generic_job(f"j-{NUMBER}"), batch_job(f"j-{NUMBER}"))
    path = _JOBS
    if batch:
        jobs = [mine.replace(NUMBER.encode(), f"{NUMBER}-{index}".encode()) for index in range(batch)]
        mine = b'{"apiVersion":"v1","kind":"List","items":[' + b",".join(jobs) + b"]}"
        path = f"{_JOBS}/batch"
    return ours.request("POST", path, mine), theirs.request("POST", _BATCH, other) if theirs else None


async def submit(
    client: LoadClient,
    ours: Target,
    theirs: Target | None,
    effort: Effort,
    *,
    clients: int,
    name: str,
    goal: float,
    batch: int = 0,
) -> Pairs:
    """Measure how many jobs per second are stored durably. `batch` is the number of jobs in a request to jobgate."""
    mine, other = submissions(ours, theirs, batch=batch)

    async def here() -> Measured:
        run = await client.run(ours, [mine], clients=clients, seconds=effort.seconds, expect=200 if batch else 201)
        return replace(run, rate=run.rate * (batch or 1))

    async def there() -> Measured:
        assert theirs is not None
        assert other is not None
        return await client.run(theirs, [other], clients=clients, seconds=effort.seconds, expect=201)

    runs = await in_turn(effort.pairs, [here, there] if theirs else [here])
    return Pairs(name=name, goal=goal, ours=runs[0], theirs=runs[1] if theirs else [])


async def prepare_poll(ours: Target, plane: ControlPlane | None) -> None:
    """Create the same jobs on both sides, and on that of Kubernetes the pods that a dashboard reads."""
    headers = {"Authorization": f"Bearer {ours.token}"}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{ours.port}", headers=headers, timeout=20) as http:
        for index in range(_POLLED_JOBS):
            answer = await http.post(f"/api/v1/namespaces/{POLLED}/jobs", json=generic_job(f"poll-{index}"))
            answer.raise_for_status()
    if plane is None:
        return
    for index in range(_POLLED_JOBS):
        job = f"poll-{index}"
        await plane.call("POST", f"/apis/batch/v1/namespaces/{POLLED}/jobs", batch_job(job))
        for rank in range(REPLICAS):
            await plane.call("POST", f"/api/v1/namespaces/{POLLED}/pods", pod(f"{job}-{rank}", job))


async def status_tags(ours: Target) -> list[str]:
    headers = {"Authorization": f"Bearer {ours.token}"}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{ours.port}", headers=headers, timeout=20) as http:
        answers = [await http.get(_status_path(index)) for index in range(_POLLED_JOBS)]
    return [answer.raise_for_status().headers["etag"] for answer in answers]


async def poll_requests(ours: Target) -> tuple[list[bytes], list[bytes]]:
    """The requests for the statuses of the prepared jobs: those answered 200, and those answered 304."""
    tags = await status_tags(ours)
    plain = [ours.request("GET", _status_path(index)) for index in range(_POLLED_JOBS)]
    known = [ours.request("GET", _status_path(n), headers={"If-None-Match": tag}) for n, tag in enumerate(tags)]
    return plain, known


def _status_path(index: int) -> str:
    return f"/api/v1/namespaces/{POLLED}/jobs/poll-{index}/status"


async def add_other_pods(client: LoadClient, theirs: Target, wanted: int) -> int:
    """Add other pods to the namespace, and return their number."""
    request = theirs.request("POST", f"/api/v1/namespaces/{POLLED}/pods", encode(pod(f"other-{NUMBER}")))
    made = 0
    while made < wanted:
        seconds = min(20.0, max(0.5, (wanted - made) / 600))
        run = await client.run(theirs, [request], clients=16, seconds=seconds, expect=201, warmup=0)
        # The control plane accepts no further pods.
        if not run.rate:
            break
        made += round(run.rate * seconds)
    return made


async def poll(
    client: LoadClient, ours: Target, theirs: Target | None, effort: Effort, *, clients: int, others: str
) -> list[Pairs]:
    """Compare GET status, answered 200 and 304, with a GET of the Job and a LIST of its pods."""
    plain, known = await poll_requests(ours)
    dashboard = [request for index in range(_POLLED_JOBS) for request in _dashboard(theirs, index)] if theirs else []

    async def fresh() -> Measured:
        return await client.run(ours, plain, clients=clients, seconds=effort.seconds, expect=200)

    async def unchanged() -> Measured:
        return await client.run(ours, known, clients=clients, seconds=effort.seconds, expect=304)

    async def there() -> Measured:
        assert theirs is not None
        return await client.run(theirs, dashboard, clients=clients, seconds=effort.seconds, expect=200, group=2)

    runs = await in_turn(effort.pairs, [fresh, unchanged, *([there] if theirs else [])])
    name = f"poll, {clients} clients, {others}"
    return [
        Pairs(name=f"{name}: 200", goal=12, ours=runs[0], theirs=runs[2] if theirs else []),
        Pairs(name=f"{name}: 304", goal=12, ours=runs[1], theirs=runs[2] if theirs else []),
    ]


def _dashboard(theirs: Target, index: int) -> list[bytes]:
    job = f"poll-{index}"
    selector = f"batch.kubernetes.io%2Fjob-name%3D{job}"
    return [
        theirs.request("GET", f"/apis/batch/v1/namespaces/{POLLED}/jobs/{job}"),
        theirs.request("GET", f"/api/v1/namespaces/{POLLED}/pods?labelSelector={selector}"),
    ]


def body_size() -> int:
    """The bytes of a submission, which are the same on both sides."""
    return len(equal_bodies(generic_job(f"j-{NUMBER}"), batch_job(f"j-{NUMBER}"))[0])
