"""Examples of the answers to GETs in the OpenAPI document, composed from the schemas of the answers.

Each field has the value of the tables below that belongs to its name, or else a value of its type. A new field or
schema therefore needs no new example, and an example never lacks a field.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from app.api.answers.responses import JSON
from app.api.long_requests.streams import EVENT_STREAM
from app.api.resources.examples import MANIFEST
from app.domain.kinds.registry import SAMPLE_KINDS

_PREFIX: Final = "#/components/schemas/"
_START: Final = "2026-01-31T12:00:00Z"
_END: Final = "2026-01-31T12:30:00Z"
_LOG: Final = "epoch 1: loss 0.42\nepoch 2: loss 0.31\n"
_TEXTS: Final = {"date-time": _START, "date": "2026-01-31", "uuid": "0b8d2d0e-8a43-4d4c-9d0b-6a1a8a1f8d10"}
_TYPES: Final = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_UNKNOWN: Final = object()
_PROBES: Final = {
    "/livez": "ok\n",
    "/readyz": "ok\n",
    "/metrics": 'jobgate_jobs{kind="GenericJob",phase="Running"} 3\n',
}

# By name of the field, and for one schema by its name and that of the field.
_VALUES: Final[Mapping[str, Any]] = {
    "actor": "alice",
    "actorId": "user:https://id.example#248289761001",
    "annotations": {},
    "apiVersion": MANIFEST["apiVersion"],
    "apiVersions": [MANIFEST["apiVersion"]],
    "attempt": 1,
    "count": 1,
    "createdBy": "alice",
    "createdById": "user:https://id.example#248289761001",
    "deletedAt": None,
    "evidenceReason": None,
    "finishedAt": None,
    "firstFailure": None,
    "generation": 1,
    "image": "busybox:1.36",
    "importedAt": None,
    "isComplete": True,
    "jobName": None,
    "kind": MANIFEST["kind"],
    "labels": {"team": "vision"},
    "message": "all replicas run",
    "mutableFields": ["/metadata/labels"],
    "namespace": "team-a",
    "namespaces": [],
    "name": "hello",
    "nativeStatus": {"phase": "Running"},
    "nextPageToken": None,
    "node": "node-1",
    "observedGeneration": 1,
    "phase": "Running",
    "podIP": "10.0.0.7",
    "podUid": "5c0f6a52-6d4e-4c1f-9a55-0f1f6f6e3b11",
    "reason": "ReplicasStarted",
    "ready": True,
    "queue": None,
    "removal": None,
    "resource": "jobs",
    "restartCount": 0,
    "retryAt": None,
    "retryOf": None,
    "running": 2,
    "scaling": {},
    "seq": 1,
    "spec": MANIFEST["spec"],
    "task": "worker",
    "uid": "0b8d2d0e-8a43-4d4c-9d0b-6a1a8a1f8d10",
    "Attempt.exitCode": None,
    "Attempt.number": 1,
    "Attempt.outcome": None,
    "Attempt.reason": None,
    "Attempt.message": None,
    "Container.exitCode": None,
    "Container.message": None,
    "Container.name": "main",
    "Container.reason": None,
    "Container.signal": None,
    "Container.state": "running",
    "Condition.type": "Running",
    "Condition.status": "True",
    "Event.type": "Warning",
    "Event.source": "pending",
    "Event.reason": "Unschedulable",
    "Event.message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
    "JobQueue.clusterQueue": "research",
    "JobQueue.cohort": "research-teams",
    "JobQueue.active": True,
    "JobQueue.message": "",
    "JobQueue.name": "team",
    "JobQueue.admitted": 3,
    "JobQueue.pending": 1,
    "JobQueue.pendingJobsOmitted": 0,
    "Kueue.message": "",
    "Kueue.state": "listed",
    "Kind.jsonSchema": {"title": "GenericJob", "type": "object"},
    "ManifestList.items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hello-worker-0"}}],
    "ControllerHealth.message": "",
    "ControllerHealth.ok": True,
    "ControllerHealth.state": "Running",
    "DatabaseHealth.ok": True,
    "Features.maxReplicas": 10_000,
    "Features.podPolicy": "baseline",
    "Feed.position": "1.42",
    "Lease.epoch": 3,
    "Lease.held": True,
    "Mirror.ageSeconds": 0.8,
    "Mirror.staleAfterSeconds": 30.0,
    "NodeRoom.closed": None,
    "PendingReason.code": "Unschedulable",
    "Queue.waitingSince": None,
    "QueuedJob.code": "WaitingForQuota",
    "QueuedJob.message": "insufficient unused quota for cpu in flavor gpu-nodes, 4 more needed",
    "QueuedJob.position": 1,
    "QueueCheck.code": None,
    "QueueCheck.detail": "",
    "QueueCheck.name": "team",
    "Quota.cohortFree": "30",
    "Quota.cohortMost": "128",
    "Quota.flavor": "gpu-nodes",
    "Quota.nominalQuota": "64",
    "Quota.resource": "cpu",
    "Quota.used": "62",
    "Quota.usedByQueue": "12",
    "Replica.exitCode": None,
    "Replica.message": None,
    "Replica.name": "hello-worker-0",
    "Replica.reason": None,
    "ScaleRecord.fromReplicas": 2,
    "ScaleRecord.message": "",
    "ScaleRecord.outcome": "Reached",
    "ScaleRecord.reason": "the queue is long",
    "ScaleRecord.settledAt": _END,
    "ScaleRecord.toReplicas": 4,
    "Status.pendingReasons": [],
    "SampleCache.cachedBytes": 140_000_000_000,
    "SampleCache.totalBytes": 140_000_000_000,
    "SampleCache.whole": True,
    "SampleJobState.message": "",
    "SampleJobState.reason": "",
    "SampleNode.cachedBytes": 70_000_000_000,
    "SampleNode.message": "",
    "SampleNode.server": "imagenet-runtime-0",
    "SampleProgress.bytesDone": None,
    "SampleProgress.filesDone": 20_480,
    "SampleProgress.filesTotal": 1_281_167,
    "SampleProgress.servers": 2,
    "SampleProgress.serversReporting": 2,
    "SampleRuntime.ready": 2,
    "SampleRuntime.wanted": 2,
    "SampleSetState.message": "",
    "SampleSetState.phase": "Ready",
    "SampleSetState.reason": "",
    "SampleSetState.sync": None,
    "ScalingDecision.fromReplicas": 2,
    "ScalingDecision.maxReplicas": 4,
    "ScalingDecision.message": "the cluster has room for one more replica",
    "ScalingDecision.minReplicas": 1,
    "ScalingDecision.refusal": None,
    "ScalingDecision.toReplicas": 3,
    "ScalingDecision.verdict": "Grows",
    "System.schemaRevision": "0011",
    "System.version": "0.2.0",
    "WatchEvent.type": "status",
    "Amount.cpuMilli": 64_000,
    "Amount.memoryMega": 256_000,
    "AutoscalerRun.error": None,
    "AutoscalerSettings.freezeSeconds": 600.0,
    "AutoscalerSettings.maxLoad": 0.97,
    "AutoscalerSettings.periodSeconds": 30.0,
    "CallLatency.p50": 0.004,
    "CallLatency.p99": 0.03,
    "Caller.expiresAt": None,
    "Caller.name": "alice",
    "Caller.namespaces": ["team-a"],
    "Capacity.nodes": 4,
    "Capacity.openNodes": 4,
    "DIServerDone.data": None,
    "DIServerProfilings.data": {"collector": {"fps": 120.5}},
    "DIServerProfilings.message": "successfully get profilings",
    "DIServerReplicas.data": ["10.0.0.7:22270"],
    "DIServerReplicas.message": "successfully get replicas",
}


def add(document: dict[str, Any]) -> None:
    """Add an example to every successful answer to a GET."""
    composer = _Composer(document["components"]["schemas"])
    for path, item in document["paths"].items():
        if "get" in item:
            for media_type, part in item["get"]["responses"]["200"].get("content", {}).items():
                part["example"] = _example(path, media_type, part["schema"], composer)


def _example(path: str, media_type: str, schema: Mapping[str, Any], composer: "_Composer") -> Any:
    if media_type == JSON:
        return composer.value(schema, "", "")
    if media_type == EVENT_STREAM:
        data, of = schema["contentSchema"], schema["contentSchema"]["$ref"].removeprefix(_PREFIX)
        event = of.removesuffix("WatchEvent").lower() or "job"
        return f"id: 1.42\nevent: {event}\ndata: {json.dumps(composer.value(data, '', ''))}\n\n"
    return _PROBES.get(path, _LOG)


class _Composer:
    """Composes a value of a schema, from the component schemas."""

    def __init__(self, components: Mapping[str, Any]) -> None:
        self._components = components
        self._values = dict(_VALUES)
        for kind in SAMPLE_KINDS.values():
            self._values |= {
                f"{kind.name}.apiVersion": kind.api_versions[0],
                f"{kind.name}.name": kind.example["metadata"]["name"],
                f"{kind.name}.spec": kind.example["spec"],
                f"{kind.name}Status.name": kind.example["metadata"]["name"],
            }

    def value(self, schema: Mapping[str, Any], owner: str, field: str) -> Any:
        """Return a value for a field of the component `owner`."""
        if "$ref" in schema:
            return self._of_component(schema["$ref"].removeprefix(_PREFIX), owner, field)
        if (known := self._find_value(owner, field)) is not _UNKNOWN and _fits(known, schema):
            return known
        if (members := schema.get("anyOf", schema.get("oneOf"))) is not None:
            return self.value(members[0], owner, field)
        if "enum" in schema:
            return next((value for value in schema["enum"] if value), schema["enum"][0])
        types = schema.get("type", "object")
        match types if isinstance(types, str) else types[0]:
            case "array":
                return [self.value(schema["items"], owner, "")]
            case "object":
                properties: Mapping[str, Any] = schema.get("properties", {})
                return {name: self.value(inside, owner, name) for name, inside in properties.items()}
            case "string":
                return _TEXTS.get(schema.get("format", ""), "")
            case "boolean":
                return False
            case _:
                return schema.get("minimum", 0)

    def _of_component(self, name: str, owner: str, field: str) -> Any:
        schema = self._components[name]
        if "properties" not in schema:
            return self.value(schema, owner, field)
        known = self._values.get(f"{owner}.{field}", _UNKNOWN)
        return self.value(schema, name, "") if known is _UNKNOWN else known

    def _find_value(self, owner: str, field: str) -> Any:
        return self._values.get(f"{owner}.{field}", self._values.get(field, _UNKNOWN))


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a value has the type of a schema, and is in its enumeration."""
    if "enum" in schema:
        return value in schema["enum"]
    types = schema.get("type", ())
    types = [types] if isinstance(types, str) else types
    if "anyOf" in schema:
        return value is None or any(_fits(value, member) for member in schema["anyOf"])
    return _TYPES[type(value)] in types
