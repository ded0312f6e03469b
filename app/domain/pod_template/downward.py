"""Rules on references to fields and resources of the pod itself, in variables and in volumes."""

import re
from typing import Final

from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kubernetes import names
from app.domain.pod_template.reading import Mapping, text
from app.domain.pod_template.resources import amount_of

_SUBSCRIPT = re.compile(r"(metadata\.(?:labels|annotations))\['(.*)'\]", re.DOTALL)
_OF_VOLUMES: Final = frozenset(
    ("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations")
)
_OF_VARIABLES: Final = frozenset(
    (
        *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
        *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
    )
)
_DECIMAL = re.compile(r"(?:0|[1-9][0-9]*)?(?:\.[0-9]*)?[mkMGTPE]?")
_BINARY = re.compile(r"[1-9][0-9]*(?:\.[0-9]*)?[KMGTPE]i")
_CPU_DIVISORS: Final = "1m or 1"
_BYTE_DIVISORS: Final = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi or 1Ei"


def check_variable_field(reference: Mapping, here: str, problems: Problems) -> None:
    accepted = "metadata.name, metadata.labels['<key>'], spec.nodeName, status.podIP or the like"
    _check_field(reference, here, problems, _OF_VARIABLES, accepted)


def check_volume_field(reference: Mapping, here: str, problems: Problems) -> None:
    accepted = "metadata.name, metadata.labels, metadata.labels['<key>'] or the like"
    _check_field(reference, here, problems, _OF_VOLUMES, accepted)


def _check_field(reference: Mapping, here: str, problems: Problems, known: frozenset[str], accepted: str) -> None:
    path = text(reference, "fieldPath")
    pointer = pointer_to(here, "fieldPath")
    # The schema reports a path that is missing or empty.
    if not path or path in known:
        return
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is None:
        problems.add(pointer, "NotSupported", f"the field {shorten(path)} cannot be used here", accepted)
        return
    check = names.label_key if subscript[1] == "metadata.labels" else names.annotation_key
    if wrong := check(subscript[2]):
        problems.add(pointer, "Invalid", f"the key {shorten(subscript[2])}: {wrong}", accepted)


def check_resource(reference: Mapping, here: str, problems: Problems) -> None:
    """Check the divisor of a reference to a resource of a container."""
    value = amount_of(reference.get("divisor"))
    if value is None or value == 0:
        return
    shown = str(reference["divisor"]).strip()
    resource = text(reference, "resource")
    if resource.endswith(".cpu"):
        accepted, fits = _CPU_DIVISORS, _DECIMAL.fullmatch(shown) and value * 1000 in (1, 1000)
    else:
        steps = {1000**power for power in range(7)} if _DECIMAL.fullmatch(shown) else set()
        if _BINARY.fullmatch(shown):
            steps = {1024**power for power in range(1, 7)}
        accepted, fits = _BYTE_DIVISORS, value in steps
    if not fits:
        detail = f"{shorten(shown)} is no divisor of this resource"
        problems.add(pointer_to(here, "divisor"), "NotSupported", detail, accepted)
