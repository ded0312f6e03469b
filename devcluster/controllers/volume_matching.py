"""The rules by which kube-controller-manager matches a claim with a volume that was created by hand. Pure."""

from collections.abc import Iterable
from decimal import Decimal

from devcluster.formats import quantity
from devcluster.formats.objects import Object, is_terminating, labels, meta, phase, spec, uid
from devcluster.formats.selectors import selects
from devcluster.registry.store import Record


def capacity(volume: Object) -> Decimal:
    return quantity.parse(spec(volume)["capacity"]["storage"])


def requested_size(claim: Object) -> Decimal:
    return quantity.parse(spec(claim)["resources"]["requests"]["storage"])


def storage_class(obj: Object) -> str:
    return str(spec(obj).get("storageClassName") or "")


def is_reserved_for(volume: Object, claim: Object) -> bool:
    """Return whether the claimRef of a volume names this claim, with the uid of the claim or without a uid."""
    named = spec(volume).get("claimRef")
    if not named:
        return False
    theirs = (meta(claim).get("namespace"), meta(claim)["name"])
    return (named.get("namespace"), named.get("name")) == theirs and named.get("uid", "") in ("", uid(claim))


def best_volume(claim: Object, volumes: Iterable[Record]) -> Record | None:
    """Return the volume that is reserved for the claim, or else the smallest suitable volume."""
    suitable = [record for record in volumes if _suits(record.object, claim)]
    reserved = [record for record in suitable if is_reserved_for(record.object, claim)]
    free = [record for record in suitable if _is_free(record.object) and _is_selected(record.object, claim)]
    # The name decides between equal capacities, so that the choice is reproducible.
    return min(reserved or free, key=lambda record: (capacity(record.object), record.name), default=None)


def _suits(volume: Object, claim: Object) -> bool:
    return not why_unfit(volume, claim) and not is_terminating(volume)


def why_unfit(volume: Object, claim: Object) -> str:
    """Return why a volume does not meet the request of a claim, or an empty string if it does."""
    if capacity(volume) < requested_size(claim):
        return "requested PV is too small"
    if storage_class(volume) != storage_class(claim):
        return "storageClassName does not match"
    if spec(volume).get("volumeMode") != spec(claim).get("volumeMode"):
        return "incompatible volumeMode"
    if set(spec(claim).get("accessModes") or []) - set(spec(volume).get("accessModes") or []):
        return "incompatible accessMode"
    return ""


def _is_free(volume: Object) -> bool:
    return not spec(volume).get("claimRef") and phase(volume) == "Available"


def _is_selected(volume: Object, claim: Object) -> bool:
    selector = spec(claim).get("selector")
    return selector is None or selects(selector, labels(volume))
