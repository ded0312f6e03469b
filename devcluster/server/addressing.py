"""Resolves the method and the path of a request to a verb and an object. Pure."""

from dataclasses import dataclass
from urllib.parse import unquote

from devcluster.errors import StatusError, bad_request, method_not_allowed, unknown_resource
from devcluster.formats.numbers import whole_number
from devcluster.registry.operations import ObjectAddress
from devcluster.resources import NAMESPACES, PODS, Catalog

_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_PROXY_VERBS = {**_OBJECT_VERBS, "HEAD": "get", "POST": "create", "OPTIONS": "get"}
_ABSENT_SUBRESOURCES = {
    "exec": "exec: containers are processes of the node's machine, so use its shell",
    "attach": "attach: follow the log instead",
    "portforward": "port-forward: pods have addresses on the node's machine, so use status.podIP",
    "ephemeralcontainers": "ephemeral containers",
    "resize": "in-place resize",
}
"""Subresources of pods that kubectl uses and this server lacks. The answer names them, instead of a plain 404."""
_PLAIN_SUBRESOURCES = ("status", "finalize", "scale")


@dataclass(frozen=True, slots=True)
class ProxyTarget:
    """The target of a proxied request in a pod. Without a port it is the first port that the pod declares."""

    scheme: str
    port: int | None
    path: str


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The meaning of a request. `verb` is the verb that RBAC uses."""

    verb: str
    address: ObjectAddress
    target: ProxyTarget | None = None


def resolve(catalog: Catalog, method: str, path: str, *, watch: bool) -> RequestInfo:
    """Resolve a raw path below /api or /apis.

    Raises:
        StatusError: there is no such resource (404), or it does not allow the method (405).
    """
    # Split before the parts are decoded: an encoded slash belongs to its part.
    raw = path.strip("/").split("/")
    group, version, parts = _split_version([unquote(part) for part in raw])
    namespace = ""
    # namespaces/<name>/status is a subresource of the namespace, and no collection in it.
    if len(parts) >= 3 and parts[0] == "namespaces" and (parts[2] not in NAMESPACES.subresources or len(parts) > 3):
        namespace, parts = parts[1], parts[2:]
    resource = catalog.find(group, version, parts[0]) if parts else None
    if resource is PODS and namespace and len(parts) > 2 and parts[2] == "proxy":
        return _address_proxy(method, namespace, parts[1], _rest(path))
    if resource is None or len(parts) > 3 or (namespace and not resource.namespaced):
        raise unknown_resource()
    name = parts[1] if len(parts) > 1 else ""
    subresource = parts[2] if len(parts) > 2 else ""
    if resource is PODS and subresource in _ABSENT_SUBRESOURCES:
        raise StatusError(405, "MethodNotAllowed", f"the embedded cluster has no {_ABSENT_SUBRESOURCES[subresource]}")
    if subresource and subresource not in resource.subresources:
        raise unknown_resource()
    address = ObjectAddress(resource, namespace, name, subresource)
    verb = _verb(method, address, watch=watch)
    if verb is None or (resource.namespaced and not namespace and verb not in ("list", "watch")):
        raise method_not_allowed()
    return RequestInfo(verb, address)


def _rest(path: str) -> str:
    """Return the path that the pod of a proxied request receives: the part after `…/pods/<name>/proxy/`, encoded."""
    return path.lstrip("/").split("/", 7)[7] if path.lstrip("/").count("/") >= 7 else ""


def _address_proxy(method: str, namespace: str, named: str, rest: str) -> RequestInfo:
    """Resolve a request to the proxy subresource of a pod, which the API server forwards to a port of the pod.

    `named` is the segment of the path with the name of the pod: `name`, `name:port` or `scheme:name:port`.
    """
    words = named.split(":")
    scheme, name, port = (words if len(words) == 3 else ["", *words, ""])[:3]
    verb = _PROXY_VERBS.get(method)
    if verb is None:
        raise method_not_allowed()
    number = whole_number(port)
    if len(words) > 3 or (port and number is None) or scheme not in ("", "http", "https"):
        raise bad_request(f'invalid pod request "{named}"')
    target = ProxyTarget(scheme or "http", number, rest)
    return RequestInfo(verb, ObjectAddress(PODS, namespace, name, "proxy"), target)


def _split_version(parts: list[str]) -> tuple[str, str, list[str]]:
    if parts[0] == "api" and len(parts) > 1:
        return "", parts[1], parts[2:]
    if parts[0] == "apis" and len(parts) > 2:
        return parts[1], parts[2], parts[3:]
    raise unknown_resource()


def _verb(method: str, address: ObjectAddress, *, watch: bool) -> str | None:
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
