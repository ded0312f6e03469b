"""Names and labels of a SampleSet's objects.

The names of cluster-wide objects and of directories on nodes contain the namespace of the set, because sets of the same
name can exist in several namespaces.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from app.domain.cache.values import SetIdentity
from app.domain.kubernetes import labels, names
from app.domain.plan import Manifest

JUICEFS: Final = "juicefs"
"""The only cache driver; it is part of labels and of the servers' command line."""

RUNTIME_SUFFIX: Final = "-runtime"
NAME_MAX: Final = names.STATEFUL_SET_NAME_MAX - len(RUNTIME_SUFFIX)
"""The maximum length of a set's name: with a longer name the pods of its StatefulSet cannot be created."""
CREATED_BY: Final = {"CreatedBy": "paddle-operator"}
_PADDLE: Final = "paddlepaddle.org/"
# 64 bits, so that two names of a cluster do not get the same hash by chance.
_HASH_LENGTH: Final = 16


def label_of(set_name: str) -> str:
    """Return the key of the label, with the value "true", on the objects of a set."""
    return f"{_PADDLE}{JUICEFS}-{set_name}"


def node_label_of(namespace: str, set_name: str) -> str:
    """Return the key of the label on the nodes that cache the set's data; its value is the name of the pod there.

    Nodes have no namespace, so the key contains the namespace of the set.
    """
    return f"{_PADDLE}{_limit_length(f'{JUICEFS}-{namespace}.{set_name}', names.LABEL_NAME_MAX)}"


def runtime_name(set_name: str) -> str:
    """Return the name of the StatefulSet of runtime servers."""
    return f"{set_name}{RUNTIME_SUFFIX}"


def service_name(set_name: str) -> str:
    return f"{runtime_name(set_name)}-service"


def token_secret_name(set_name: str) -> str:
    return f"{runtime_name(set_name)}-token"


def runtime_pod_name(set_name: str, index: int) -> str:
    return f"{runtime_name(set_name)}-{index}"


def volume_name(namespace: str, set_name: str) -> str:
    """Return the name of the PersistentVolume, which is also its volume handle and fits into a label value.

    The name is unique in the cluster. A namespace has no dot, so the first dot ends the namespace; a shortened name has
    no dot at all.
    """
    return _limit_length(f"{namespace}.{set_name}", names.LABEL_VALUE_MAX)


def directory_volume_names(directories: Sequence[str], reserved: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the name of a pod volume for each of these distinct directories.

    The name is the path with dashes, as upstream names it, if that is a valid name and unique. Otherwise it is a hash.
    """
    plain = [path.removeprefix("/").replace("/", "-") for path in directories]
    return tuple(
        name
        if names.dns_label(name) is None and plain.count(name) == 1 and name not in reserved
        else f"cache-{_digest(path)}"
        for name, path in zip(plain, directories, strict=True)
    )


def object_metadata(identity: SetIdentity, name: str, *, namespaced: bool = True) -> Manifest:
    """Return the metadata of a set's object.

    The objects have no owner reference: removal deletes them in a fixed order and finds them by their labels.
    """
    metadata: Manifest = {"name": name, "labels": set_labels(identity), "annotations": dict(CREATED_BY)}
    if namespaced:
        metadata["namespace"] = identity.namespace
    return metadata


def set_labels(identity: SetIdentity) -> dict[str, str]:
    """Return the labels that identify the objects of this set and of this installation."""
    return {
        label_of(identity.name): "true",
        labels.INSTALLATION: identity.installation,
        labels.SAMPLE_SET_UID: identity.uid,
        labels.SAMPLE_SET_NAMESPACE: identity.namespace,
        labels.MANAGED_BY: labels.MANAGER,
        labels.PART_OF: labels.MANAGER,
        labels.INSTANCE: identity.name,
    }


def pod_selector(identity: SetIdentity) -> Mapping[str, str]:
    """Return the selector of the runtime servers' pods: upstream's two labels."""
    return {label_of(identity.name): "true", "name": runtime_name(identity.name)}


def _limit_length(whole: str, limit: int) -> str:
    """Return the text, or a prefix and a hash of it if it is longer than the limit."""
    if len(whole) <= limit:
        return whole
    return f"{whole[: limit - _HASH_LENGTH - 1].replace('.', '-').rstrip('-')}-{_digest(whole)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]
