"""Events of the control plane, and the expiry of old Events."""

import asyncio
from datetime import datetime, timedelta

from devcluster import clock
from devcluster.formats.objects import Object, meta
from devcluster.registry.deletion import DeleteOptions
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.registry.store import Record
from devcluster.resources import EVENTS


class Recorder:
    """Records Events in the name of one component of the control plane."""

    def __init__(self, registry: Registry, component: str) -> None:
        self._registry = registry
        self._component = component

    def record(self, about: Record, kind: str, reason: str, message: str, action: str = "") -> None:
        now = clock.now()
        # Events about objects without a namespace are in `default`.
        namespace = about.namespace or "default"
        event: Object = {
            # client-go names Events after the object and the time in nanoseconds.
            "metadata": {"name": f"{about.name}.{int(now.timestamp() * 1e9):x}", "namespace": namespace},
            "involvedObject": _reference(about),
            "reason": reason,
            "message": message,
            "type": kind,
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
        event |= _events_api_fields(action, now) if action else _core_fields(self._component, now)
        self._registry.create(ObjectAddress(EVENTS, namespace), event)


def _core_fields(component: str, now: datetime) -> Object:
    """Return the fields that the recorder of client-go sets, which the node controller uses."""
    stamp = clock.timestamp(now)
    return {"source": {"component": component}, "firstTimestamp": stamp, "lastTimestamp": stamp, "count": 1}


def _events_api_fields(action: str, now: datetime) -> Object:
    """Return the fields that the events.k8s.io recorder sets, which the scheduler uses. Its timestamps are absent."""
    return {
        "action": action,
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": clock.micro_timestamp(now),
    }


def _reference(about: Record) -> Object:
    found = {
        "kind": about.resource.kind,
        "namespace": about.namespace,
        "name": about.name,
        "uid": str(meta(about.object)["uid"]),
        "apiVersion": about.resource.group_version,
        "resourceVersion": str(about.version),
    }
    return {key: value for key, value in found.items() if value}


class EventExpiry:
    """Deletes Events after their time to live."""

    def __init__(self, registry: Registry, ttl_seconds: float) -> None:
        self._registry = registry
        self._ttl = timedelta(seconds=ttl_seconds)

    async def run(self) -> None:
        while True:
            self.sweep()
            # A short time to live, as in tests, needs shorter periods.
            await asyncio.sleep(min(60.0, self._ttl.total_seconds() / 2))

    def sweep(self) -> None:
        horizon = clock.now() - self._ttl
        for record in list(self._registry.store.iterate(EVENTS)):
            created = clock.parse_optional(meta(record.object).get("creationTimestamp"))
            if created is not None and created < horizon:
                self._registry.delete(ObjectAddress(EVENTS, record.namespace, record.name), DeleteOptions())
