"""Rights as RBAC words them: read from deploy/, and told from the requests that a gateway makes."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.support.clusters.discovery import collection_of
from tests.support.clusters.kube import KubeClient

DEPLOY = Path(__file__).parents[2] / "deploy"
RBAC = DEPLOY / "rbac.yaml"
QUEUES = DEPLOY / "rbac-queues.yaml"
LOGS = DEPLOY / "logs.yaml"
SAMPLE_SETS = DEPLOY / "rbac-sample-sets.yaml"
DRY_RUN = DEPLOY / "rbac-dry-run.yaml"
NAMESPACED = DEPLOY / "rbac-namespaced.example.yaml"

_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/]+)/[^/]+)(?:/namespaces/[^/]+(?=/[a-z]))?/(?P<resource>[a-z]+)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[a-z]+))?(?:(?<=/proxy)/.*)?"
)
_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


class Right(NamedTuple):
    """One verb on one resource; `names` empty is all objects of it."""

    group: str
    resource: str
    verb: str
    names: tuple[str, ...] = ()


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def granted(subject: str, found: list[dict[str, Any]]) -> set[Right]:
    """All that the bindings of these documents give to a subject by name."""
    roles = {(item["kind"], item["metadata"]["name"]): item for item in found if item["kind"].endswith("Role")}
    rights: set[Right] = set()
    for binding in found:
        if binding["kind"].endswith("RoleBinding") and any(s["name"] == subject for s in binding["subjects"]):
            rights |= set(_rights_of(roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]))
    return rights


def _rights_of(role: dict[str, Any]) -> Iterator[Right]:
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Right(group, resource, verb, tuple(rule.get("resourceNames", ())))


def used(request: bytes) -> Right | None:
    """The right that a request needs; None for what everybody may read, such as which APIs there are."""
    method, target, _ = request.decode().split(" ")
    parts = urlsplit(target)
    found = _PATH.fullmatch(parts.path)
    if found is None:
        return None
    group, resource, name, subresource = (found[key] or "" for key in ("group", "resource", "name", "subresource"))
    verb = _VERBS.get(method, "get" if name else "list")
    if verb == "list" and "watch" in parse_qs(parts.query):
        verb = "watch"
    names = (name,) if resource == "namespaces" and verb == "get" else ()
    return Right(group, f"{resource}/{subresource}" if subresource else resource, verb, names)


async def apply(api: KubeClient, *sources: list[dict[str, Any]]) -> None:
    """Create or change the objects of these documents, as `kubectl apply` would."""
    for document in chain.from_iterable(sources):
        collection = await collection_of(api, document)
        assert collection is not None, f"the cluster has no {document['apiVersion']}"
        answer = await api.post(collection, document)
        if answer.status == 409:
            answer = await api.patch(f"{collection}/{document['metadata']['name']}", document)
        answer.ok()
