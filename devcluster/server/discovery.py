"""The discovery documents and the version document, from the table of resources. Pure."""

from typing import Any

from devcluster.controllers.kueue.visibility import GROUP_VERSION
from devcluster.resources import VERBS, ApiResource, Catalog
from devcluster.server import visibility
from devcluster.server.reviews import REVIEWS

VERSION = {
    "major": "1", "minor": "36", "gitVersion": "v1.36.0+devcluster", "gitCommit": "", "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "devcluster",
}  # fmt: skip
_SUBRESOURCE_KINDS = {"binding": "Binding", "eviction": "Eviction", "proxy": "PodProxyOptions", "scale": "Scale"}
# kubectl drain and kubectl scale look up the group and version of the bodies that they send.
_SUBRESOURCE_GROUPS = {"eviction": ("policy", "v1"), "scale": ("autoscaling", "v1")}
_CATEGORIES = {"pods": ["all"], "services": ["all"], "statefulsets": ["all"]}
_SUBRESOURCE_VERBS = {
    "binding": ["create"],
    "eviction": ["create"],
    "log": ["get"],
    "finalize": ["update"],
    "proxy": ["create", "delete", "get", "patch", "update"],
}


def document(catalog: Catalog, path: str) -> dict[str, Any] | None:
    """Return the discovery document at a path, or None when there is none."""
    parts = path.strip("/").split("/")
    if parts == ["version"]:
        return dict(VERSION)
    if parts == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    groups = catalog.groups()
    if parts == ["api", "v1"]:
        return _resource_list("v1", groups["v1"])
    if parts[0] != "apis" or len(parts) > 3:
        return None
    unstored = _unstored_resources()
    named = {gv.partition("/")[0]: gv for gv in (*groups, *unstored) if "/" in gv}
    if len(parts) == 1:
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(gv) for gv in named.values()]}
    if len(parts) == 2:
        found = named.get(parts[1])
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(found)} if found else None
    group_version = "/".join(parts[1:])
    if group_version in unstored:
        return _list_of(group_version, unstored[group_version])
    return _resource_list(group_version, groups[group_version]) if group_version in groups else None


def _group(group_version: str) -> dict[str, Any]:
    group, _, version = group_version.partition("/")
    entry = {"groupVersion": group_version, "version": version}
    return {"name": group, "versions": [entry], "preferredVersion": entry}


def _resource_list(group_version: str, rows: list[ApiResource]) -> dict[str, Any]:
    return _list_of(group_version, [entry for row in rows for entry in _entries(row)])


def _unstored_resources() -> dict[str, list[dict[str, Any]]]:
    """Return the resources of groups that store no objects, by group and version."""
    found: dict[str, list[dict[str, Any]]] = {GROUP_VERSION: visibility.RESOURCES}
    for review in REVIEWS:
        entry = {
            "name": review.plural,
            "singularName": review.kind.lower(),
            "namespaced": False,
            "kind": review.kind,
            "verbs": ["create"],
        }
        found.setdefault(review.group_version, []).append(entry)
    return found


def _list_of(group_version: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}


def _entries(row: ApiResource) -> list[dict[str, Any]]:
    entry: dict[str, Any] = {
        "name": row.plural,
        "singularName": row.kind.lower(),
        "namespaced": row.namespaced,
        "kind": row.kind,
        "verbs": list(VERBS),
    }
    if row.short_names:
        entry["shortNames"] = list(row.short_names)
    if row.plural in _CATEGORIES:
        entry["categories"] = _CATEGORIES[row.plural]
    below = [
        {
            "name": f"{row.plural}/{name}",
            "singularName": "",
            "namespaced": row.namespaced,
            "kind": _SUBRESOURCE_KINDS.get(name, row.kind),
            "verbs": _SUBRESOURCE_VERBS.get(name, ["get", "patch", "update"]),
            **dict(zip(("group", "version"), _SUBRESOURCE_GROUPS.get(name, ()), strict=False)),
        }
        for name in row.subresources
    ]
    return [entry, *below]
