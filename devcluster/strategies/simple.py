"""The strategies of the kinds that have few rules of their own."""

from base64 import b64encode

from typing_extensions import override

from devcluster.errors import FieldCause, forbidden_field, invalid_value, required
from devcluster.formats import names
from devcluster.formats.objects import Object, meta, spec
from devcluster.strategies.base import Strategy

# Kubernetes' limit on the data of a ConfigMap or Secret.
_MAX_DATA = 1024 * 1024


class NamespaceStrategy(Strategy):
    split_status = True

    @override
    def name_problem(self, name: str) -> str | None:
        return names.dns_label(name)

    @override
    def default(self, obj: Object) -> None:
        meta(obj).setdefault("labels", {})["kubernetes.io/metadata.name"] = meta(obj).get("name", "")
        # Only a new namespace has no uid. An update may have removed the finalizer on purpose.
        if "uid" not in meta(obj):
            obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
        obj.setdefault("status", {}).setdefault("phase", "Active")

    @override
    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        if subresource == "finalize":
            new["status"] = old.get("status", {})
            return
        super().prepare_update(new, old, subresource)
        # The finalizers of a namespace are its only spec, and only the subresource `finalize` may change them.
        new["spec"] = old.get("spec", {})


class NodeStrategy(Strategy):
    split_status = True

    @override
    def prepare_create(self, obj: Object) -> None:
        """Keep the status, with which a node registers, and taint the node until it reports Ready."""
        taints = obj.setdefault("spec", {}).setdefault("taints", [])
        if not any(taint.get("key") == "node.kubernetes.io/not-ready" for taint in taints):
            taints.append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})

    @override
    def default(self, obj: Object) -> None:
        status = obj.setdefault("status", {})
        obj.setdefault("spec", {})
        if "capacity" in status:
            # Kubernetes' default: without a reservation for the system, pods may use all of the capacity.
            status.setdefault("allocatable", dict(status["capacity"]))


class ServiceStrategy(Strategy):
    split_status = True

    @override
    def name_problem(self, name: str) -> str | None:
        return names.dotless_label(name)

    @override
    def default(self, obj: Object) -> None:
        found = obj.setdefault("spec", {})
        found.setdefault("type", "ClusterIP")
        found.setdefault("sessionAffinity", "None")
        for port in found.get("ports") or []:
            port.setdefault("protocol", "TCP")
            if "port" in port:
                port.setdefault("targetPort", port["port"])
        if found["type"] != "ExternalName":
            found.setdefault("ipFamilies", ["IPv4"])
            found.setdefault("ipFamilyPolicy", "SingleStack")
            found.setdefault("internalTrafficPolicy", "Cluster")
        if "clusterIP" in found:
            found["clusterIPs"] = [found["clusterIP"]]
        obj.setdefault("status", {}).setdefault("loadBalancer", {})

    @override
    def validate(self, obj: Object) -> list[FieldCause]:
        ports = spec(obj).get("ports") or []
        # A headless Service only has DNS entries, which need no port.
        if not ports and spec(obj).get("clusterIP") != "None" and spec(obj).get("type") != "ExternalName":
            return [required("spec.ports")]
        causes: list[FieldCause] = []
        seen: set[str] = set()
        for index, port in enumerate(ports):
            causes += _service_port(f"spec.ports[{index}]", port, seen, named=len(ports) > 1)
        return causes

    @override
    def validate_update(self, new: Object, old: Object) -> list[FieldCause]:
        before, after = spec(old).get("clusterIP"), spec(new).get("clusterIP")
        if before and before != after:
            return [invalid_value("spec.clusterIPs[0]", [after], "may not change once set")]
        return self.validate(new)


def _service_port(path: str, port: Object, seen: set[str], *, named: bool) -> list[FieldCause]:
    causes = []
    name = port.get("name", "")
    if named and not name:
        causes.append(required(f"{path}.name"))
    wrong = names.dns_label(name) if name else None
    if wrong:
        causes.append(invalid_value(f"{path}.name", name, wrong))
    if name and name in seen:
        causes.append(FieldCause("FieldValueDuplicate", f'Duplicate value: "{name}"', f"{path}.name"))
    seen.add(name)
    if not 1 <= int(port.get("port", 0)) <= 65535:
        causes.append(invalid_value(f"{path}.port", port.get("port", 0), "must be between 1 and 65535, inclusive"))
    return causes


class ConfigMapStrategy(Strategy):
    @override
    def validate(self, obj: Object) -> list[FieldCause]:
        causes = []
        size = 0
        for key, value in {**(obj.get("data") or {}), **(obj.get("binaryData") or {})}.items():
            wrong = names.config_key(key)
            if wrong:
                causes.append(invalid_value(f"data[{key}]", key, wrong))
            size += len(value.encode())
        if size > _MAX_DATA:
            causes.append(FieldCause("FieldValueTooLong", f"Too long: may not be more than {_MAX_DATA} bytes", ""))
        return causes

    @override
    def validate_update(self, new: Object, old: Object) -> list[FieldCause]:
        if not old.get("immutable"):
            return self.validate(new)
        why = "field is immutable when `immutable` is set"
        fields = ("data", "binaryData")
        return [forbidden_field(name, why) for name in fields if new.get(name) != old.get(name)]


class SecretStrategy(ConfigMapStrategy):
    @override
    def default(self, obj: Object) -> None:
        obj.setdefault("type", "Opaque")
        # `stringData` is write-only: no answer contains it.
        given: dict[str, str] = obj.pop("stringData", None) or {}
        if given:
            encoded = {key: b64encode(text.encode()).decode() for key, text in given.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}


class ServiceAccountStrategy(Strategy):
    pass


class QuotaStrategy(Strategy):
    split_status = True

    @override
    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})
        obj.setdefault("status", {})


class EventStrategy(Strategy):
    @override
    def validate(self, obj: Object) -> list[FieldCause]:
        """Require that an Event is in the namespace of the object that it is about."""
        about = (obj.get("involvedObject") or {}).get("namespace", "")
        own = meta(obj).get("namespace", "")
        # An Event about an object without a namespace is in `default`.
        if about in ("", own) and (about or own == "default"):
            return []
        return [invalid_value("involvedObject.namespace", about, "does not match event.namespace")]


class CustomStrategy(Strategy):
    """The strategy of a custom resource with a status subresource."""

    split_status = True
