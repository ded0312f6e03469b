"""Reads the cluster for a reconcile of a SampleSet or a SampleJob: objects by name, pods and nodes by label, Secrets.

The contents of Secrets are in the values of one reconcile only. Nothing that outlives it holds them.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from app.domain.cache.job_options import JobOptions, clear_options, rmr_options, sync_options, warmup_options
from app.domain.cache.manifests.storage import check_secret, is_shared
from app.domain.cache.naming import (
    node_label_of,
    runtime_name,
    runtime_pod_name,
    service_name,
    token_secret_name,
    volume_name,
)
from app.domain.cache.reconcile.cache_status import RuntimePod
from app.domain.cache.reconcile.events import job_word
from app.domain.cache.reconcile.values import Complaint, RuntimeStatus, SetObserved
from app.domain.cache.values import SecretValues, SetIdentity
from app.domain.cache.vocabulary import Found, JobType, SetPart
from app.domain.errors import DomainError
from app.domain.kinds.samples.specs.sample_job import SampleJobSpec
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from app.domain.kinds.samples.specs.secret_refs import SecretRef, resolve_ref
from app.domain.kubernetes import labels
from app.domain.kubernetes.conditions import by_type, is_true
from app.domain.kubernetes.objects import Object, Pod
from app.domain.status.pods.diagnosis import describe_server_gates
from app.domain.vocabulary import PendingCode
from app.k8s.api import KubeApi
from app.k8s.codec import NODE as NODE_CODEC
from app.k8s.codec import OBJECT
from app.k8s.codec import POD as POD_CODEC
from app.k8s.errors import KubeForbidden, KubeNotFound
from app.k8s.events import newest_events
from app.k8s.resources import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SECRET,
    SERVICE,
    STATEFUL_SET,
    KubeResource,
)
from app.loops.cache.runtime_servers import RuntimeServer
from app.loops.controller_settings import SampleSettings

KINDS: Final[Mapping[SetPart, KubeResource]] = {
    SetPart.PV: PERSISTENT_VOLUME,
    SetPart.PVC: PERSISTENT_VOLUME_CLAIM,
    SetPart.TOKEN: SECRET,
    SetPart.SERVICE: SERVICE,
    SetPart.RUNTIME: STATEFUL_SET,
}
NO_SECRET: Final = "ErrorSecretNotExist"  # noqa: S105  the reason of an event
_FILE: Final = "file://"  # a source without keys

SecretOrComplaint: TypeAlias = SecretValues | Complaint
OptionsOrComplaint: TypeAlias = JobOptions | Complaint


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A SampleSet: its identity, its spec, and the token of its runtime servers."""

    identity: SetIdentity
    spec: SampleSetSpec
    token: str = field(repr=False)

    @property
    def node_label(self) -> str:
        return node_label_of(self.identity.namespace, self.identity.name)

    def name_of(self, part: SetPart) -> str:
        namespace, name = self.identity.namespace, self.identity.name
        return {
            SetPart.PV: volume_name(namespace, name),
            SetPart.PVC: name,
            SetPart.TOKEN: token_secret_name(name),
            SetPart.SERVICE: service_name(name),
            SetPart.RUNTIME: runtime_name(name),
        }[part]

    def namespace_of(self, part: SetPart) -> str | None:
        return self.identity.namespace if KINDS[part].namespaced else None


def subject_of(identity: SetIdentity, manifest: Mapping[str, Any], token: str) -> Subject:
    """Return the subject of a stored manifest."""
    return Subject(identity=identity, spec=SampleSetSpec.model_validate(manifest["spec"]), token=token)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetObjects:
    """The objects of a set in the cluster. `denied` holds the messages about objects that RBAC forbids to read."""

    objects: Mapping[SetPart, Object] = field(default_factory=dict, repr=False)
    found: Mapping[SetPart, Found] = field(default_factory=dict)
    denied: Mapping[SetPart, str] = field(default_factory=dict)
    pods: Sequence[Pod] = ()
    labelled: Mapping[str, str] = field(default_factory=dict)

    def ours(self, part: SetPart) -> Object | None:
        """Return the object if it belongs to the set."""
        return self.objects[part] if self.found.get(part) is Found.OURS else None

    def observe(self, identity: SetIdentity, failures: Mapping[SetPart, str]) -> SetObserved:
        """Return the observation without what takes further requests."""
        volume = self.ours(SetPart.PV)
        return SetObserved(
            found=self.found,
            volume_bound=_is_bound(volume),
            is_shared=volume is not None and is_shared(volume.raw, identity),
            runtime=_runtime_status(self.ours(SetPart.RUNTIME)),
            pods=tuple(sorted(map(_runtime_pod, self.pods), key=lambda pod: pod.index)),
            labelled=self.labelled,
            failures={**failures, **self.denied},
        )

    def servers(self, subject: Subject) -> list[RuntimeServer]:
        """Return the running servers in the order of their indexes."""
        found = [
            RuntimeServer(
                index=_index(pod),
                namespace=subject.identity.namespace,
                pod=pod.metadata.name,
                node=pod.spec.node_name,
                address=pod.status.pod_ip,
                token=subject.token,
            )
            for pod in self.pods
            if _is_running(pod)
        ]
        return sorted(found, key=lambda server: server.index)


class ClusterReader:
    """Reads the cluster; `timeout` is in seconds for each request."""

    def __init__(self, api: KubeApi, settings: SampleSettings, *, timeout: float) -> None:
        self._api = api
        self._settings = settings
        self._timeout = timeout

    async def objects(self, subject: Subject, *, leaving: bool) -> SetObjects:
        """Return the objects under the set's names and with its labels.

        Raises:
            KubeError: the cluster does not answer. For a set that is leaving, also if RBAC forbids to read an object.
        """
        objects: dict[SetPart, Object] = {}
        denied: dict[SetPart, str] = {}
        for part in SetPart:
            try:
                objects[part] = await self._read(subject, part)
            except KubeNotFound:
                continue
            except KubeForbidden as error:
                if leaving:
                    raise  # an object that cannot be read may still exist
                denied[part] = error.message
        found = {part: _whose(item, subject.identity) for part, item in objects.items()}
        foreign = found.get(SetPart.RUNTIME) is Found.FOREIGN
        return SetObjects(
            objects=objects,
            found=found,
            denied=denied,
            pods=await self.pods(subject),
            # Node labels do not carry the uid. With a foreign StatefulSet of this name, the labels may be its own.
            labelled={} if foreign else await self._read_labelled(subject, leaving=leaving),
        )

    async def pods(self, subject: Subject) -> list[Pod]:
        """Return the pods of the set's runtime servers."""
        identity = subject.identity
        selector = f"{labels.INSTALLATION}={identity.installation},{labels.SAMPLE_SET_UID}={identity.uid}"
        return await self._api.list_all(POD, identity.namespace, codec=POD_CODEC, label_selector=selector)

    async def runtime(self, subject: Subject) -> Object | None:
        """Return the StatefulSet if it belongs to the set."""
        try:
            found = await self._read(subject, SetPart.RUNTIME)
        except KubeNotFound:
            return None
        return found if _whose(found, subject.identity) is Found.OURS else None

    async def volume_secret(self, subject: Subject) -> SecretOrComplaint:
        """Return the Secret of the volume, or a complaint if it cannot be read or is not valid."""
        secret = await self._secret(subject.identity.namespace, subject.spec.secret_ref, None)
        if isinstance(secret, Complaint):
            return secret
        try:
            check_secret(secret, self._settings.site.sources)
        except DomainError as error:
            return Complaint(reason=f"ErrorCreate{SetPart.PV}", message=_message(error))
        return secret

    async def first_sync(self, subject: Subject) -> OptionsOrComplaint:
        """Return the options that the set's first sync would have now."""
        spec, source = subject.spec, subject.spec.source
        secret: SecretOrComplaint | None = None
        # A Secret that is not needed is not read.
        if not spec.source_uri.startswith(_FILE):
            own = source.secret_ref if source else None
            secret = await self._secret(subject.identity.namespace, own or SecretRef(), spec.secret_ref)
        return self._options(subject, None, secret, None)

    async def job_options(self, subject: Subject, job: SampleJobSpec) -> OptionsOrComplaint:
        """Return the options that the job would have now."""
        kind = JobType(job.type)
        secret: SecretOrComplaint | None = None
        runtime: Object | None = None
        if kind is JobType.SYNC and not _source_of(subject, job).startswith(_FILE):
            secret = await self._secret(subject.identity.namespace, job.secret_ref, None)
        if kind is JobType.CLEAR:
            runtime = await self.runtime(subject)
            if runtime is None:
                message = "the StatefulSet of the set is not there"
                return Complaint(reason=f"ErrorCreate{job_word(kind)}", message=message)
        return self._options(subject, job, secret, runtime)

    async def warning(self, subject: Subject, objects: SetObjects, *, servers: int) -> Complaint | None:
        """Return why the first one of so many servers that is not ready does not start: the scheduling gates of its
        pod, or the newest Warning about it. If it has no pod, it is the newest Warning about the StatefulSet.

        Raises:
            KubeError: the Events cannot be read.
        """
        by_name = {pod.metadata.name: pod for pod in objects.pods}
        found = [by_name.get(runtime_pod_name(subject.identity.name, index)) for index in range(servers)]
        unready = [pod for pod in found if pod is None or not _is_ready(pod)]
        if not unready:
            return None
        pod = unready[0]
        if pod is not None and pod.spec.scheduling_gates:
            # No client reports a gate by an Event.
            return Complaint(reason=PendingCode.SCHEDULING_GATED, message=describe_server_gates(pod))
        about = pod if pod is not None else objects.ours(SetPart.RUNTIME)
        if about is None:
            return None
        # By uid: the Events of a former object of this name are still stored, for an hour by default.
        selector = f"involvedObject.uid={about.metadata.uid},type=Warning"
        warnings = await newest_events(self._api, subject.identity.namespace, selector, most=1, timeout=self._timeout)
        return Complaint(reason=warnings[0].reason, message=warnings[0].message) if warnings else None

    async def _read(self, subject: Subject, part: SetPart) -> Object:
        return await self._api.get(
            KINDS[part], subject.name_of(part), subject.namespace_of(part), codec=OBJECT, timeout=self._timeout
        )

    async def _read_labelled(self, subject: Subject, *, leaving: bool) -> dict[str, str]:
        try:
            nodes = await self._api.list_all(NODE, codec=NODE_CODEC, label_selector=subject.node_label)
        except KubeForbidden:
            if leaving:
                raise
            return {}
        return {node.metadata.name: node.metadata.labels[subject.node_label] for node in nodes}

    async def _secret(self, home: str, ref: SecretRef | None, fallback: SecretRef | None) -> SecretOrComplaint:
        """Read a Secret that the manifest names, if the installation allows its namespace.

        The settings are checked again here, because they may have changed since the manifest was accepted.
        """
        if ref is None:
            return Complaint(reason=NO_SECRET, message="spec.secretRef should not be empty")
        namespace, name = resolve_ref(ref, fallback, home)
        if not name:
            return Complaint(reason=NO_SECRET, message="spec.secretRef.name is not set")
        if namespace != home and namespace not in self._settings.secret_namespaces:
            message = f"Secrets of the namespace {namespace} may not be used here"
            return Complaint(reason=NO_SECRET, message=message)
        try:
            found = await self._api.get(SECRET, name, namespace, codec=OBJECT, timeout=self._timeout)
        except KubeNotFound:
            return Complaint(reason=NO_SECRET, message=f"secret {name} is not exist")
        except KubeForbidden as error:
            return Complaint(reason=NO_SECRET, message=f"secret {name} may not be read: {error.message}")
        return SecretValues(name=name, namespace=namespace, data=_decode(found.raw.get("data")))

    def _options(
        self,
        subject: Subject,
        job: SampleJobSpec | None,
        secret: SecretOrComplaint | None,
        runtime: Object | None,
    ) -> OptionsOrComplaint:
        if isinstance(secret, Complaint):
            return secret
        identity, spec, site = subject.identity, subject.spec, self._settings.site
        kind = JobType(job.type) if job else JobType.SYNC
        try:
            if job is None or kind is JobType.SYNC:
                return sync_options(identity, spec, job, secret, site)
            if kind is JobType.WARMUP:
                return warmup_options(identity, spec, job, site)
            if kind is JobType.RMR:
                return rmr_options(identity, job, site)
            return clear_options(identity, job, runtime.raw if runtime else {})
        except DomainError as error:
            return Complaint(reason=f"ErrorCreate{job_word(kind)}", message=_message(error))


def _source_of(subject: Subject, job: SampleJobSpec) -> str:
    own = job.sync_options.source if job.sync_options else ""
    return own or subject.spec.source_uri


def _whose(item: Object, identity: SetIdentity) -> Found:
    found = item.metadata.labels
    ours = (found.get(labels.INSTALLATION), found.get(labels.SAMPLE_SET_UID))
    return Found.OURS if ours == (identity.installation, identity.uid) else Found.FOREIGN


def _is_bound(volume: Object | None) -> bool:
    return volume is not None and _mapping(volume, "status").get("phase") == "Bound"


def replicas_of(runtime: Object | None) -> int | None:
    """Return the desired number of servers, or None if it is not known."""
    wanted = _mapping(runtime, "spec").get("replicas") if runtime is not None else None
    return wanted if isinstance(wanted, int) else None


def _runtime_status(runtime: Object | None) -> RuntimeStatus:
    if runtime is None:
        return RuntimeStatus()
    ready = _mapping(runtime, "status").get("readyReplicas")
    return RuntimeStatus(spec_replicas=replicas_of(runtime) or 0, ready_replicas=ready if isinstance(ready, int) else 0)


def _mapping(item: Object, name: str) -> Mapping[str, Any]:
    value = item.raw.get(name)
    return value if isinstance(value, dict) else {}


def _runtime_pod(pod: Pod) -> RuntimePod:
    return RuntimePod(index=_index(pod), name=pod.metadata.name, node=pod.spec.node_name, is_running=_is_running(pod))


def _is_running(pod: Pod) -> bool:
    return pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None


def _is_ready(pod: Pod) -> bool:
    return _is_running(pod) and is_true(by_type(pod.status.conditions), "Ready")


def _index(pod: Pod) -> int:
    # The ordinal that the StatefulSet controller appends. Other pods with these labels may have none.
    number = pod.metadata.name.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else 0


def _decode(data: Any) -> dict[str, str]:
    """Decode the data of a Secret. Values that are not text are left out, as if they were missing."""
    values: dict[str, str] = {}
    for key, value in data.items() if isinstance(data, dict) else ():
        try:
            values[key] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError, TypeError, ValueError):
            continue
    return values


def _message(error: DomainError) -> str:
    return error.errors[0].detail if error.errors else error.message
