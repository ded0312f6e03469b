"""Carries out the actions of a reconcile of a SampleSet or a SampleJob: requests to the cluster and to runtime servers.

The actions run in their order. After one has failed, later creations and posts are skipped, because they may depend on
it. The next reconcile computes them again.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from app.base.faultpoints import FaultPoint, reach
from app.domain.cache.manifests.service import runtime_service, token_secret
from app.domain.cache.manifests.stateful_set import runtime_stateful_set
from app.domain.cache.manifests.storage import persistent_volume, persistent_volume_claim
from app.domain.cache.reconcile.values import (
    CacheAction,
    Complaint,
    Create,
    Delete,
    LabelNode,
    PostOptions,
    Scale,
    Terminate,
)
from app.domain.cache.values import SecretValues
from app.domain.cache.vocabulary import JobType, SetPart
from app.domain.errors import DomainError
from app.domain.plan import JobWarning, Manifest
from app.domain.status.log_lines import one_line
from app.domain.status.records import MOST_WARNINGS
from app.domain.status.refusal_messages import refusal_message
from app.domain.status.refusals import judge
from app.domain.vocabulary import WarningSource
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.errors import (
    KubeAlreadyExists,
    KubeConflict,
    KubeError,
    KubeNotFound,
    KubeServerError,
    KubeStatusError,
    KubeTooManyRequests,
)
from app.k8s.resources import NODE, STATEFUL_SET
from app.loops import metrics
from app.loops.cache.observation import KINDS, OptionsOrComplaint, SetObjects, Subject
from app.loops.cache.runtime_servers import NoAnswer, RuntimeServer, RuntimeServers
from app.loops.controller_settings import SampleSettings
from app.loops.leadership.lease import Leadership

log = structlog.get_logger(__name__)


class ActionDeferred(Exception):  # noqa: N818 - not an error
    """An action is not possible yet; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleWork:
    """The actions of one reconcile and what they need. `options` are read only when they are posted to a server."""

    subject: Subject
    actions: Sequence[CacheAction]
    kind: JobType
    objects: SetObjects
    secret: SecretValues | None
    options: Callable[[], Awaitable[OptionsOrComplaint]]
    refusals: dict[SetPart, str] = field(default_factory=dict)
    """The cluster's messages about refused creations. The reconciles of a set share this dict."""
    warnings: list[JobWarning] = field(default_factory=list)
    """The cluster's warnings about created objects. The reconciles of a set share this list."""

    def warn(self, text: str) -> None:
        """Remember a warning of the cluster about a new object."""
        warning = JobWarning(source=WarningSource.CLUSTER, message=one_line(text))
        if warning not in self.warnings and len(self.warnings) < MOST_WARNINGS:
            self.warnings.append(warning)


class SampleActuator:
    """Performs actions. `verify` raises WrongCluster if the cluster has been replaced; `timeout` is in seconds."""

    def __init__(
        self,
        api: KubeApi,
        runtimes: RuntimeServers,
        leadership: Leadership,
        settings: SampleSettings,
        *,
        verify: Callable[[], Awaitable[None]],
        timeout: float,
    ) -> None:
        self._api = api
        self._runtimes = runtimes
        self._leadership = leadership
        self._settings = settings
        self._verify = verify
        # The lease must outlast the longest request of an action.
        self._timeout = max(timeout, runtimes.timeout)

    async def perform(self, work: SampleWork) -> bool:
        """Perform the actions. Return whether none of them failed in a way that is worth a retry.

        A refusal by the cluster is not: it is recorded, and the next regular reconcile tries again.

        Raises:
            LeaseLost: another process has become the controller.
            WrongCluster: the cluster has been replaced.
        """
        done, stopped = True, False
        for action in work.actions:
            if stopped and isinstance(action, Create | PostOptions):
                continue
            name = type(action).__name__
            try:
                # Before every action: the lease may have been lost during the previous one.
                await self._verify()
                self._leadership.guard(self._timeout)
                with metrics.ACTION_DURATION.labels(name).time():
                    proceed = await self._do(work, action)
            except (KubeError, NoAnswer, ActionDeferred) as error:
                log.warning("sample.action_failed", action=name, set=work.subject.identity.uid, error=str(error))
                metrics.ACTIONS.labels(name, "failed").inc()
                done, stopped = False, True
                continue
            stopped = stopped or not proceed
            metrics.ACTIONS.labels(name, "done" if proceed else "refused").inc()
        return done

    async def _do(self, work: SampleWork, action: CacheAction) -> bool:
        match action:
            case Create(part=part):
                return await self._create(work, part)
            case Delete(part=part):
                await self._delete(work, part)
            case Scale(replicas=replicas):
                await self._scale(work.subject, replicas)
            case LabelNode():
                await self._label(work.subject, action)
            case PostOptions():
                await self._post(work, action)
            case Terminate():
                await self._terminate(work)
        return True

    async def _create(self, work: SampleWork, part: SetPart) -> bool:
        """Create an object. Return whether it exists now; a refusal is recorded."""
        try:
            manifest = self._manifest(work, part)
            await self._api.create_as(manifest, OBJECT, timeout=self._timeout, on_warning=work.warn)
            reach(FaultPoint.SAMPLE_OBJECT_CREATED)
        except KubeAlreadyExists:
            pass  # the next reconcile determines whether it belongs to the set
        # Temporary, so they are retried with back-off. Any other refusal becomes part of the set's status.
        except (KubeServerError, KubeTooManyRequests):
            raise
        except (KubeStatusError, DomainError) as error:
            work.refusals[part] = _refusal(work, error)
            log.info("sample.create_refused", set=work.subject.identity.uid, object=str(part), error=error.message)
            return False
        work.refusals.pop(part, None)
        return True

    def _manifest(self, work: SampleWork, part: SetPart) -> Manifest:
        subject = work.subject
        identity = subject.identity
        match part:
            case SetPart.PV:
                if work.secret is None:
                    raise ActionDeferred("the volume's Secret has not been read")
                return persistent_volume(identity, subject.spec, work.secret, self._settings.site.sources)
            case SetPart.PVC:
                return persistent_volume_claim(identity)
            case SetPart.TOKEN:
                return token_secret(identity, subject.token)
            case SetPart.SERVICE:
                return runtime_service(identity)
            case SetPart.RUNTIME:
                volume = work.objects.ours(SetPart.PV)
                if volume is None:
                    raise ActionDeferred("the volume is not there yet")
                return runtime_stateful_set(identity, subject.spec, volume.raw, self._settings.site)

    async def _delete(self, work: SampleWork, part: SetPart) -> None:
        """Delete the object that was read. The uid protects an object that has replaced it under the same name."""
        found = work.objects.ours(part)
        if found is None:
            return
        with suppress(KubeNotFound, KubeConflict):
            await self._api.delete(
                KINDS[part],
                found.metadata.name,
                work.subject.namespace_of(part),
                uid=found.metadata.uid,
                timeout=self._timeout,
            )
        reach(FaultPoint.SAMPLE_OBJECT_DELETED)

    async def _scale(self, subject: Subject, replicas: int) -> None:
        # The subresource scale changes nothing but the number, so concurrent edits of the object do not conflict.
        await self._api.merge_patch(
            STATEFUL_SET,
            subject.name_of(SetPart.RUNTIME),
            subject.identity.namespace,
            patch={"spec": {"replicas": replicas}},
            subresource="scale",
            timeout=self._timeout,
        )

    async def _label(self, subject: Subject, action: LabelNode) -> None:
        patch = {"metadata": {"labels": {subject.node_label: action.value}}}
        # The node is gone, and its label with it.
        with suppress(KubeNotFound):
            await self._api.merge_patch(NODE, action.node, patch=patch, timeout=self._timeout)
        reach(FaultPoint.NODE_LABELLED)

    async def _post(self, work: SampleWork, action: PostOptions) -> None:
        options = await work.options()
        if isinstance(options, Complaint):
            raise ActionDeferred(options.message)
        # A server compares option files byte for byte, so equal options must give equal bytes.
        body = json.dumps(options.option_file(), sort_keys=True).encode()
        running = {server.index: server for server in work.objects.servers(work.subject)}
        absent = [index for index in action.servers if index not in running]

        async def post(server: RuntimeServer) -> None:
            await self._runtimes.post(server, work.kind, action.job, body)
            reach(FaultPoint.SAMPLE_POSTED)

        await _each(post, [running[index] for index in action.servers if index in running])
        if absent:
            raise ActionDeferred(f"the runtime servers {absent} do not run")

    async def _terminate(self, work: SampleWork) -> None:
        async def terminate(server: RuntimeServer) -> None:
            await self._runtimes.terminate(server)
            reach(FaultPoint.SAMPLE_TERMINATED)

        await _each(terminate, work.objects.servers(work.subject))


async def _each(do: Callable[[RuntimeServer], Awaitable[None]], servers: Sequence[RuntimeServer]) -> None:
    """Send to all servers, even if one of them does not answer.

    Raises:
        NoAnswer: of the first server that failed.
    """
    outcomes = await asyncio.gather(*(do(server) for server in servers), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


def _refusal(work: SampleWork, error: KubeStatusError | DomainError) -> str:
    """Return the message of a refused create for the status of the set."""
    if isinstance(error, DomainError):
        return error.message
    causes = [(cause.reason, cause.message) for cause in error.causes]
    _, code = judge(error.status, error.reason, error.message, causes, seen_before=True)
    return refusal_message(code, error.status, error.message, work.subject.identity.namespace)
