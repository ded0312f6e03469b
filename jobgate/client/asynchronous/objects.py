"""What a client does with the objects of one resource."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Generic, Unpack

import msgspec

from jobgate.client.asynchronous.logs import AsyncJobLogs, AsyncLog
from jobgate.client.asynchronous.pages import rows_of
from jobgate.client.calls import (
    Draft,
    Filters,
    JobCalls,
    Ref,
    ResourceCalls,
    SampleSetCalls,
    Secrets,
    State,
    Summary,
    Whole,
)
from jobgate.client.errors import OverloadedError, UnavailableError, UnreachableError, WaitTimeoutError, problem_error
from jobgate.client.log_options import LogOptions
from jobgate.client.phases import Goal, is_settled
from jobgate.client.types import (
    Dependents,
    DryRun,
    Event,
    History,
    Job,
    JobStatus,
    JobSummary,
    Redaction,
    Replica,
    ResourceDryRun,
    SampleJob,
    SampleJobStatus,
    SampleJobSummary,
    SampleSet,
    SampleSetStatus,
    SampleSetSummary,
    ScaleRecord,
)
from jobgate.client.wire import BatchItem, Call, Change, DryRunMode, Manifest, Manifests, decode

if TYPE_CHECKING:
    from jobgate.client.asynchronous.client import AsyncClient

# Seconds that one poll waits for a change. Below the idle timeouts of common proxies.
_POLL: Final = 30.0
# Seconds without data after which a watch reconnects. The gateway sends a comment every 15 s.
_SILENCE: Final = 45.0
# Seconds before a watch reconnects, and between polls while the gateway does not answer.
_RECONNECT: Final = 1.0
# Seconds without an answer after which following an object fails. A restart of the gateway takes less.
_PATIENCE: Final = 300.0
_TRANSIENT: Final = (UnreachableError, UnavailableError, OverloadedError)


class AsyncResource(Generic[Whole, State, Summary, Draft]):
    """The objects of one resource. A reference is a name in a namespace, a uid, or an object."""

    def __init__(self, client: "AsyncClient", calls: ResourceCalls[Whole, State, Summary, Draft]) -> None:
        self._client = client
        self._calls = calls

    async def submit(self, manifest: Manifest, *, namespace: str | None = None, key: str | None = None) -> Whole:
        """Submit one manifest and return the stored object.

        The Idempotency-Key makes repetitions safe. Give `key` to make them safe across processes as well.
        """
        return await self._client.send(self._calls.submit(manifest, key or str(uuid.uuid4()), namespace))

    async def submit_batch(
        self, manifests: Manifests, *, atomic: bool = False, namespace: str | None = None, key: str | None = None
    ) -> Sequence[BatchItem[Whole]]:
        """Submit up to 100 manifests in one request, and return their results in the same order.

        Each manifest is stored or refused on its own. With `atomic`, all are stored or none, and a refusal raises one
        `ProblemError`, whose pointers begin with `/items/<index>`. `key` has the same meaning as for `submit`.
        """
        call = self._calls.submit_batch(manifests, key or str(uuid.uuid4()), namespace, atomic=atomic)
        return (await self._client.send(call)).items

    async def dry_run(self, manifest: Manifest, *, mode: DryRunMode = "All", namespace: str | None = None) -> Draft:
        """Return what the submission of one manifest would store and create, without storing anything.

        With the mode `All`, the cluster checks the objects too, for at most 10 s. With `Local`, only the gateway does.
        """
        return (await self._client.send(self._calls.dry_run(manifest, mode, namespace))).items[0]

    async def get(self, ref: Ref, *, namespace: str | None = None) -> Whole:
        return await self._client.send(self._calls.get(ref, namespace))

    async def posted_manifest(self, ref: Ref, *, namespace: str | None = None) -> Mapping[str, Any] | None:
        """Return the manifest as it was posted, with later edits, which `submit` and `replace` accept.

        None if the gateway does not know it, because an early version of jobgate stored the object.
        """
        return (await self._client.send(self._calls.posted_manifest(ref, namespace))).manifest

    async def status(self, ref: Ref, *, namespace: str | None = None) -> State:
        """Return the object without its manifest and native status: the cheapest read."""
        return await self._client.send(self._calls.status(ref, namespace))

    async def list(self, *, namespace: str | None = None, **filters: Unpack[Filters]) -> AsyncIterator[Whole]:
        """Yield the objects of a namespace, newest first, or of all namespaces for the namespace `*`."""
        async for item in rows_of(self._client, self._calls.page(namespace, filters)):
            yield item

    async def summaries(self, *, namespace: str | None = None, **filters: Unpack[Filters]) -> AsyncIterator[Summary]:
        """Yield the objects that `list` yields, but only the fields that a table shows: about 1 kB for each object."""
        async for item in rows_of(self._client, self._calls.summaries(namespace, filters)):
            yield item

    async def replace(
        self, ref: Ref, manifest: Manifest | Whole, *, namespace: str | None = None, if_match: str | None = None
    ) -> Whole:
        """Replace the manifest of an object, by text or content, or by an object that `get` returned."""
        return await self._client.send(self._calls.replace(ref, manifest, namespace, if_match))

    async def patch(
        self, ref: Ref, patch: Mapping[str, Any], *, namespace: str | None = None, if_match: str | None = None
    ) -> Whole:
        """Edit the manifest of an object by a merge patch (RFC 7396)."""
        return await self._client.send(self._calls.patch(ref, patch, namespace, if_match))

    async def delete(
        self, ref: Ref, *, reason: str | None = None, namespace: str | None = None, if_match: str | None = None
    ) -> Whole:
        """Delete the objects of the cluster. The record, the history and the captured logs remain readable."""
        return await self._client.send(self._calls.delete(ref, reason, namespace, if_match))

    async def history(self, ref: Ref, *, namespace: str | None = None) -> Sequence[History]:
        """Return what happened to the object, in the order of the gateway."""
        return [row async for row in rows_of(self._client, self._calls.history(ref, namespace, None))]

    async def events(self, ref: Ref, *, namespace: str | None = None) -> Sequence[Event]:
        """Return why replicas are pending now, and the last Events of ended attempts."""
        return [row async for row in rows_of(self._client, self._calls.events(ref, namespace, None))]

    async def follow(
        self, ref: Ref, *, until: Goal = Goal.DONE, timeout: float | None = None, namespace: str | None = None
    ) -> AsyncIterator[State]:
        """Yield the status now and after each change, until the goal is reached or cannot be reached any more.

        Changes that follow each other quickly may be yielded as one. The object is followed by its uid, also if its
        name is used again. Failures of the connection are bridged.

        Raises:
            WaitTimeoutError: `timeout` seconds have passed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        call, tag = self._calls.status(ref, namespace), None
        last: State | None = None
        answered_at = time.monotonic()
        while True:
            left = _POLL if deadline is None else deadline - time.monotonic()
            if last is not None and left <= 0:
                raise WaitTimeoutError(f"{last.name} is {last.status.phase or 'New'} after {timeout:g} s", last)
            try:
                state, tag = await self._poll(call, tag, max(0, int(min(left, _POLL))))
            except _TRANSIENT:
                if last is None or time.monotonic() - answered_at > _PATIENCE:
                    raise
                await asyncio.sleep(_RECONNECT)
                continue
            answered_at = time.monotonic()
            if state is not None:
                last = state
                yield state
                call = self._calls.status(last)
                if is_settled(until, state.status.phase, is_deleted=_is_gone(state)):
                    return
            if tag is None:  # the gateway sends one; without it, a poll does not wait
                await asyncio.sleep(_RECONNECT)

    async def wait(
        self, ref: Ref, *, until: Goal = Goal.DONE, timeout: float | None = None, namespace: str | None = None
    ) -> State:
        """Return the status when the goal is reached, or cannot be reached any more.

        Raises:
            WaitTimeoutError: `timeout` seconds have passed.
        """
        last: State | None = None
        async for state in self.follow(ref, until=until, timeout=timeout, namespace=namespace):
            last = state
        if last is None:
            raise AssertionError("a wait yields at least the present status")
        return last

    async def redact(self, uid: uuid.UUID, **selection: Unpack[Secrets]) -> Redaction:
        """Remove secrets from everything that is stored of an object. This needs an admin of all namespaces.

        The answer has the number of stored rows that changed.
        """
        changed, token = 0, None
        while True:
            done = await self._client.send(self._calls.redact(uid, selection, token))
            changed, token = changed + done.changed, done.next_page_token
            if token is None:
                return msgspec.structs.replace(done, changed=changed)

    async def watch(self, *, namespace: str | None = None) -> AsyncIterator[Change[State]]:
        """Yield every change of the objects of a namespace, or of all namespaces for `*`, from now on and without end.

        After a gap that the gateway cannot fill, it yields each object that exists, with the type `listed`.
        """
        last_id: str | None = None
        while True:
            try:
                async with self._client.stream(
                    _resume(self._calls.watch(namespace), last_id), read_timeout=_SILENCE
                ) as answer:
                    async for event in self._client.events_of(answer):
                        last_id = event.id or last_id
                        if event.event == "reset":
                            async for whole in self.list(namespace=namespace):
                                yield self._change_from_list(whole)
                        elif event.event == "denied":
                            raise problem_error(401, event.data.encode())
                        elif event.event not in {"ready", "shutdown", "message"}:
                            yield decode(event.data.encode(), Change[self._calls.state])  # type: ignore[name-defined]
            except _TRANSIENT:
                pass
            await asyncio.sleep(_RECONNECT)

    def _change_from_list(self, whole: Whole) -> Change[State]:
        state = msgspec.convert(msgspec.to_builtins(whole), self._calls.state)
        return Change(type="listed", at=whole.created_at, object=state)

    async def _poll(self, call: Call[State], tag: str | None, wait: int) -> tuple[State | None, str | None]:
        """Return the status and its tag, or None for an unchanged status."""
        headers = {} if tag is None else {"If-None-Match": tag, "Prefer": f"wait={wait}"}
        answer = await self._client.exchange(replace(call, headers=headers), wait=wait)
        if answer.status_code == 304:
            return None, tag
        return decode(answer.content, call.answer), answer.headers.get("ETag")


class AsyncJobs(AsyncResource[Job, JobStatus, JobSummary, DryRun]):
    """The jobs of a gateway."""

    def __init__(self, client: "AsyncClient", namespace: str) -> None:
        self._jobs = JobCalls(
            resource="jobs", whole=Job, state=JobStatus, summary=JobSummary, draft=DryRun, namespace=namespace
        )
        super().__init__(client, self._jobs)
        self._logs = AsyncJobLogs(client, self._jobs)

    async def replicas(
        self, ref: Ref, *, task: str | None = None, phase: str | None = None, namespace: str | None = None
    ) -> Sequence[Replica]:
        """Return each replica with its attempts."""
        call = self._jobs.replicas(ref, namespace, task=task, phase=phase, page_token=None)
        return [replica async for replica in rows_of(self._client, call)]

    async def scale_records(self, ref: Ref, *, namespace: str | None = None) -> Sequence[ScaleRecord]:
        """Return the requests for another number of replicas, with their outcomes."""
        return [record async for record in rows_of(self._client, self._jobs.scale_records(ref, namespace, None))]

    async def scale(
        self,
        ref: Ref,
        replicas: int | Mapping[str, int],
        *,
        task: str | None = None,
        reason: str | None = None,
        namespace: str | None = None,
    ) -> Job:
        """Request another number of replicas: of one task, or of several tasks by name."""
        return await self._client.send(self._jobs.scale(ref, replicas, task=task, reason=reason, namespace=namespace))

    async def pause(self, ref: Ref, *, reason: str | None = None, namespace: str | None = None) -> Job:
        return await self._client.send(self._jobs.act(ref, "pause", reason, namespace))

    async def resume(self, ref: Ref, *, reason: str | None = None, namespace: str | None = None) -> Job:
        return await self._client.send(self._jobs.act(ref, "resume", reason, namespace))

    async def cancel(self, ref: Ref, *, reason: str | None = None, namespace: str | None = None) -> Job:
        """End a live job. Its record and its ended pods stay."""
        return await self._client.send(self._jobs.act(ref, "cancel", reason, namespace))

    async def retry(
        self, ref: Ref, *, name: str | None = None, reason: str | None = None, namespace: str | None = None
    ) -> Job:
        """Submit the manifest of an ended job as a new job, and return that."""
        key = str(uuid.uuid4())
        return await self._client.send(self._jobs.retry(ref, key, name=name, reason=reason, namespace=namespace))

    async def logs(
        self, ref: Ref, *, namespace: str | None = None, **options: Unpack[LogOptions]
    ) -> AsyncIterator[str]:
        """Yield the lines of the log of one container of one attempt, by default of the newest log of rank 0.

        With `follow`, the lines go on until the container ends. `since` is an age in seconds.

        Raises:
            UnreachableError: the log was cut off; its last line says why.
        """
        async for line in self._logs.lines(ref, namespace, options):
            yield line

    @asynccontextmanager
    async def open_log(
        self, ref: Ref, *, namespace: str | None = None, **options: Unpack[LogOptions]
    ) -> AsyncIterator[AsyncLog]:
        """Open a log as `logs` does, and yield it with its source. A stored log has no `timestamps`."""
        async with self._logs.open(ref, namespace, options) as log:
            yield log

    async def save_log(
        self, ref: Ref, file: BinaryIO, *, namespace: str | None = None, **options: Unpack[LogOptions]
    ) -> int:
        """Write the bytes of a log to a file, and return their number.

        After a lost connection, it continues with the first byte that is missing.

        Raises:
            UnreachableError: no byte has come for a minute. The file has what came before.
        """
        return await self._logs.save(ref, file, namespace, options)


class AsyncSampleSets(AsyncResource[SampleSet, SampleSetStatus, SampleSetSummary, ResourceDryRun]):
    """The SampleSets of a gateway."""

    def __init__(self, client: "AsyncClient", namespace: str) -> None:
        self._sets = SampleSetCalls(
            resource="samplesets",
            whole=SampleSet,
            state=SampleSetStatus,
            summary=SampleSetSummary,
            draft=ResourceDryRun,
            namespace=namespace,
        )
        super().__init__(client, self._sets)

    async def dependents(self, ref: Ref, *, namespace: str | None = None) -> Dependents:
        """Return the jobs and SampleJobs that use the SampleSet."""
        return await self._client.send(self._sets.dependents(ref, namespace))


class AsyncSampleJobs(AsyncResource[SampleJob, SampleJobStatus, SampleJobSummary, ResourceDryRun]):
    """The SampleJobs of a gateway."""

    def __init__(self, client: "AsyncClient", namespace: str) -> None:
        calls = ResourceCalls(
            resource="samplejobs",
            whole=SampleJob,
            state=SampleJobStatus,
            summary=SampleJobSummary,
            draft=ResourceDryRun,
            namespace=namespace,
        )
        super().__init__(client, calls)


def _is_gone(state: JobStatus | SampleSetStatus | SampleJobStatus) -> bool:
    """Return whether a wait ends because of a deletion. A deleted job goes on until it is cancelled."""
    return state.deleted_at is not None and not isinstance(state, JobStatus)


def _resume(call: Call[bytes], last_id: str | None) -> Call[bytes]:
    return call if last_id is None else replace(call, headers={"Last-Event-ID": last_id})
