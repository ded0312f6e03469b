"""Names and labels of a set's objects. What is cluster-wide, or on a node, carries its namespace too."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from app.domain import labels, names
from app.domain.cache.values import SetIdentity

JUICEFS: Final = "juicefs"
DEFAULT_DRIVER: Final = JUICEFS
DRIVER_NAMES: Final = (JUICEFS,)

RUNTIME_SUFFIX: Final = "-runtime"
# What a set's name may have, so that pods of its StatefulSet can be created.
NAME_MAX: Final = names.STATEFUL_SET_NAME_MAX - len(RUNTIME_SUFFIX)
CREATED_BY: Final = {"CreatedBy": "paddle-operator"}
_PADDLE: Final = "paddlepaddle.org/"
_HASH: Final = 16


def label_of(driver: str, set_name: str) -> str:
    """The label, of the value "true", on the objects of a set."""
    return f"{_PADDLE}{driver}-{set_name}"


def node_label_of(driver: str, namespace: str, set_name: str) -> str:
    """The label, of a pod's name, on the nodes with a set's data: nodes are no namespace's, so that it has one."""
    return f"{_PADDLE}{_bounded(f'{driver}-{namespace}.{set_name}', names.LABEL_NAME_MAX)}"


def runtime_name(set_name: str) -> str:
    return f"{set_name}{RUNTIME_SUFFIX}"


def service_name(set_name: str) -> str:
    return f"{runtime_name(set_name)}-service"


def token_secret_name(set_name: str) -> str:
    """The Secret by which the set's runtime servers know their controller."""
    return f"{runtime_name(set_name)}-token"


def runtime_pod_name(set_name: str, index: int) -> str:
    return f"{runtime_name(set_name)}-{index}"


def volume_name(namespace: str, set_name: str) -> str:
    """The PersistentVolume and its handle: one for each set of the cluster, and short enough for a label's value.

    A namespace has no dot, so that the first one says where the set's name begins; what had to be cut short has none.
    """
    return _bounded(f"{namespace}.{set_name}", names.LABEL_VALUE_MAX)


def directory_volume_names(directories: Sequence[str], reserved: Sequence[str] = ()) -> tuple[str, ...]:
    """A pod's volume for each of these distinct directories: the path with dashes, where that names it and no other."""
    plain = [path.removeprefix("/").replace("/", "-") for path in directories]
    return tuple(
        name
        if names.dns_label(name) is None and plain.count(name) == 1 and name not in reserved
        else f"cache-{_digest(path)}"
        for name, path in zip(plain, directories, strict=True)
    )


def set_labels(identity: SetIdentity, driver: str) -> dict[str, str]:
    """Labels by which everything of a set, and of this installation, is found again."""
    return {
        label_of(driver, identity.name): "true",
        labels.INSTALLATION: identity.installation,
        labels.SAMPLE_SET_UID: identity.uid,
        labels.SAMPLE_SET_NAMESPACE: identity.namespace,
        labels.MANAGED_BY: labels.MANAGER,
        labels.PART_OF: labels.MANAGER,
        labels.INSTANCE: identity.name,
    }


def pod_selector(identity: SetIdentity, driver: str) -> Mapping[str, str]:
    """What selects the runtime's pods: upstream's two labels."""
    return {label_of(driver, identity.name): "true", "name": runtime_name(identity.name)}


def _bounded(whole: str, limit: int) -> str:
    if len(whole) <= limit:
        return whole
    return f"{whole[: limit - _HASH - 1].replace('.', '-').rstrip('-')}-{_digest(whole)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH]
