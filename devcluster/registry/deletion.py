"""The rules of deletion: preconditions, grace periods, finalizers and propagation. Pure but for the current time."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from devcluster import clock
from devcluster.errors import bad_request, precondition_failed
from devcluster.formats.objects import Object, is_terminal, is_terminating, meta, spec, uid
from devcluster.resources import NAMESPACES, PODS, ApiResource

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class DeletionOutcome(StrEnum):
    """What a delete request does: remove the object, mark it as terminating, or leave it as it is."""

    REMOVE = "remove"
    MARK = "mark"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    grace: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: str = ""
    dry_run: bool = False


def parse_options(body: Any, query: Mapping[str, str], *, dry_run: bool) -> DeleteOptions:
    """Read DeleteOptions from the body, and fields that the body lacks from the query."""
    body = body or {}
    if not isinstance(body, dict):
        raise bad_request("DeleteOptions must be a JSON object")
    preconditions = body.get("preconditions") or {}
    return DeleteOptions(
        grace=_grace(body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))),
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
        propagation=body.get("propagationPolicy") or query.get("propagationPolicy", ""),
        dry_run=dry_run or "All" in (body.get("dryRun") or []),
    )


def _grace(given: Any) -> int | None:
    if given is None:
        return None
    try:
        return int(given)
    except (TypeError, ValueError):
        raise bad_request(f'strconv.ParseInt: parsing "{given}": invalid syntax') from None


def check_preconditions(resource: ApiResource, obj: Object, options: DeleteOptions) -> None:
    name = str(meta(obj)["name"])
    if options.uid is not None and options.uid != uid(obj):
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid(obj)}). "
            "The object might have been deleted and then recreated"
        )
        raise precondition_failed(resource.kind, name, why)
    version = meta(obj)["resourceVersion"]
    if options.version is not None and options.version != version:
        why = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
            f"record ({version}). The object might have been modified"
        )
        raise precondition_failed(resource.kind, name, why)


def decide(resource: ApiResource, obj: Object, options: DeleteOptions) -> DeletionOutcome:
    """Decide the outcome of a delete request. With MARK, `obj` is changed to the object to store."""
    if resource is NAMESPACES:
        return _decide_namespace(obj)
    changed = _add_propagation(obj, options.propagation)
    if is_terminating(obj):
        return _decide_terminating(obj, options, changed=changed)
    grace = _pod_grace(obj, options.grace) if resource is PODS else 0
    if grace == 0 and not meta(obj).get("finalizers"):
        if resource is PODS:
            _mark_terminating(obj, 0)
        return DeletionOutcome.REMOVE
    _mark_terminating(obj, grace)
    return DeletionOutcome.MARK


def _decide_namespace(obj: Object) -> DeletionOutcome:
    if not is_terminating(obj):
        meta(obj)["deletionTimestamp"] = clock.timestamp()
        obj.setdefault("status", {})["phase"] = "Terminating"
        return DeletionOutcome.MARK
    return (
        DeletionOutcome.KEEP if spec(obj).get("finalizers") or meta(obj).get("finalizers") else DeletionOutcome.REMOVE
    )


def _decide_terminating(obj: Object, options: DeleteOptions, *, changed: bool) -> DeletionOutcome:
    """Decide about an object that is terminating already: its grace period may only become shorter."""
    metadata = meta(obj)
    left = metadata.get("deletionGracePeriodSeconds") or 0
    if options.grace is not None and options.grace < left:
        asked = max(options.grace, 0)
        due = clock.parse_optional(metadata["deletionTimestamp"]) or clock.now()
        # The deadline moves by the difference, so that the time that has passed still counts.
        metadata["deletionTimestamp"] = clock.timestamp(due - timedelta(seconds=left - asked))
        metadata["deletionGracePeriodSeconds"] = left = asked
        changed = True
    if left == 0 and not metadata.get("finalizers"):
        return DeletionOutcome.REMOVE
    return DeletionOutcome.MARK if changed else DeletionOutcome.KEEP


def _pod_grace(pod: Object, requested: int | None) -> int:
    # Without a running process there is nothing to wait for.
    if not spec(pod).get("nodeName") or is_terminal(pod):
        return 0
    grace = spec(pod).get("terminationGracePeriodSeconds", 30) if requested is None else requested
    # A real API server treats a negative grace period as 1.
    return int(grace) if grace >= 0 else 1


def _mark_terminating(obj: Object, grace: int) -> None:
    metadata = meta(obj)
    metadata["deletionTimestamp"] = clock.timestamp(clock.now() + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    # A real API server counts a deletion as a change of the spec.
    if metadata.get("generation"):
        metadata["generation"] += 1


def _add_propagation(obj: Object, policy: str) -> bool:
    wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(policy)
    finalizers = meta(obj).get("finalizers") or []
    # The policy of the last request replaces an earlier one.
    kept = [name for name in finalizers if name not in (FOREGROUND, ORPHAN)] if policy else list(finalizers)
    if wanted:
        kept.append(wanted)
    if kept == finalizers:
        return False
    meta(obj)["finalizers"] = kept
    return True


def is_due(obj: Object) -> bool:
    """Return whether nothing keeps a terminating object any more: neither finalizers nor a grace period."""
    metadata = meta(obj)
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    # A namespace has finalizers in its spec too.
    return not metadata.get("deletionGracePeriodSeconds") and not (spec(obj).get("finalizers"))
