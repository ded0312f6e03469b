"""From method and path to verb and address."""

from dataclasses import dataclass

from app.devcluster.errors import method_not_allowed, unknown_resource
from app.devcluster.registry import Address
from app.devcluster.resources import NAMESPACES, PODS, Catalog

_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_PLAIN_SUBRESOURCES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class Call:
    """What a request asks for; `verb` is the word RBAC would use."""

    verb: str
    address: Address


def resolve(catalog: Catalog, method: str, path: str, *, watch: bool) -> Call:
    """Read a path under /api or /apis; raises the server's 404 or 405."""
    group, version, parts = _split_version(path.strip("/").split("/"))
    namespace = ""
    if len(parts) >= 3 and parts[0] == "namespaces" and (parts[2] not in NAMESPACES.subresources or len(parts) > 3):
        namespace, parts = parts[1], parts[2:]
    resource = catalog.find(group, version, parts[0]) if parts else None
    if resource is None or len(parts) > 3 or (namespace and not resource.namespaced):
        raise unknown_resource()
    name = parts[1] if len(parts) > 1 else ""
    subresource = parts[2] if len(parts) > 2 else ""
    if subresource and subresource not in resource.subresources:
        raise unknown_resource()
    address = Address(resource, namespace, name, subresource)
    verb = _verb(method, address, watch=watch)
    if verb is None or (resource.namespaced and not namespace and verb not in ("list", "watch")):
        raise method_not_allowed()
    return Call(verb, address)


def _split_version(parts: list[str]) -> tuple[str, str, list[str]]:
    if parts[0] == "api" and len(parts) > 1:
        return "", parts[1], parts[2:]
    if parts[0] == "apis" and len(parts) > 2:
        return parts[1], parts[2], parts[3:]
    raise unknown_resource()


def _verb(method: str, address: Address, *, watch: bool) -> str | None:
    if not address.name:
        return "watch" if watch and method == "GET" else _COLLECTION_VERBS.get(method)
    if not address.subresource:
        return _OBJECT_VERBS.get(method)
    if address.resource is PODS and address.subresource in ("binding", "eviction"):
        return "create" if method == "POST" else None
    if address.subresource == "log":
        return "get" if method == "GET" else None
    verb = _OBJECT_VERBS.get(method)
    return verb if verb != "delete" and address.subresource in _PLAIN_SUBRESOURCES else None
