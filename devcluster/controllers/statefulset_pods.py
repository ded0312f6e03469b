"""The pods and revisions of a StatefulSet: names, manifests and state of each pod. Pure but for the current time."""

import hashlib
import json
from copy import deepcopy
from datetime import timedelta
from typing import Any

from devcluster import clock
from devcluster.formats import objects
from devcluster.formats.numbers import whole_number
from devcluster.formats.objects import Object, condition, is_terminating, labels, meta, phase, spec, uid

REVISION_LABEL = "controller-revision-hash"
# The alphabet of SafeEncodeString in k8s.io/apimachinery.
_HASH_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_HASH_LENGTH = 10


def owner(parent: Object) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": meta(parent)["name"],
        "uid": uid(parent),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def start(found: Object) -> int:
    return int((spec(found).get("ordinals") or {}).get("start", 0))


def ordinal_of(parent: Object, pod: Object) -> int | None:
    """Return the ordinal of a pod, or None if the name of the pod is not one that the set gives."""
    name, _, number = str(meta(pod)["name"]).rpartition("-")
    return whole_number(number) if name == meta(parent)["name"] else None


def make_pod(parent: Object, number: int, template: Object, revision: str) -> Object:
    name = f"{meta(parent)['name']}-{number}"
    # The template belongs to a revision in the store, whose objects are never changed in place.
    made: Object = deepcopy({"metadata": template.get("metadata") or {}, "spec": template.get("spec") or {}})
    metadata = made["metadata"]
    metadata |= {"name": name, "generateName": f"{meta(parent)['name']}-", "ownerReferences": [owner(parent)]}
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(number),
        REVISION_LABEL: revision,
    }
    made["spec"]["hostname"] = name
    if spec(parent).get("serviceName"):
        made["spec"]["subdomain"] = spec(parent)["serviceName"]
    return made


def template_data(parent: Object) -> Object:
    """Return the data that a ControllerRevision stores of a set."""
    # As in a real cluster, a strategic merge patch that replaces the template.
    return {"spec": {"template": {**spec(parent)["template"], "$patch": "replace"}}}


def template_of(revision: Object) -> Object:
    kept: dict[str, Any] = revision["data"]["spec"]["template"]
    return {key: value for key, value in kept.items() if key != "$patch"}


def revision_name(parent: Object, data: Object) -> str:
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).digest()
    suffix = "".join(_HASH_ALPHABET[byte % len(_HASH_ALPHABET)] for byte in digest[:_HASH_LENGTH])
    return f"{meta(parent)['name']}-{suffix}"


def revision_of(pod: Object) -> str:
    return labels(pod).get(REVISION_LABEL, "")


def is_healthy(pod: Object) -> bool:
    return is_ready(pod) and not is_terminating(pod)


def is_ready(pod: Object) -> bool:
    """Return whether a pod runs and is ready: a pod that has ended may still carry its old Ready condition."""
    return phase(pod) == "Running" and objects.is_ready(pod)


def is_available(pod: Object, seconds: int) -> bool:
    """Return whether a pod has been ready for at least this many seconds."""
    if not is_ready(pod):
        return False
    since = clock.parse_optional((condition(pod, "Ready") or {}).get("lastTransitionTime"))
    return not seconds or since is None or since + timedelta(seconds=seconds) <= clock.now()
