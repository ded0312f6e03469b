"""Compares an object of the cluster with the manifest that creates it.

jobgate knows an object again by its name, owner, labels and finalizer. A mutating webhook or policy can change them
while the object is created. jobgate would lose such an object, so it refuses and deletes the object that the answer to
the create names.
"""

from collections.abc import Collection, Iterator

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata, Object, Pod
from app.domain.kubernetes.queueing import Workload
from app.domain.plan import Manifest
from app.domain.status.observed import RefusalVerdict
from app.domain.status.pods.main_container import main_container
from app.domain.status.pods.observation import foreign_finalizers
from app.domain.status.pods.ownership import controller_of, is_owned, names_anchor
from app.domain.status.pods.terminating import name_finalizers
from app.domain.vocabulary import PendingCode, Reason


class UnusableObject(Exception):  # noqa: N818 - an answer of the cluster, not a fault
    """An object of the cluster that has the name of the one to be created, or was created, and cannot serve as it."""

    def __init__(self, verdict: RefusalVerdict, code: str, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.code = code
        self.message = message


def require_own(manifest: Manifest, found: Metadata, anchors: Collection[str]) -> None:
    """Accept an existing object as the one to be created. `anchors` are the known uids of the job's anchor.

    Raises:
        UnusableObject: it is another one, or it is terminating.
    """
    metadata = manifest["metadata"]
    wanted = metadata["labels"]
    # The anchor itself has no owner. Its name contains the uid of the job.
    has_owner = "ownerReferences" in metadata
    is_proved = is_owned(found, wanted[labels.JOB_UID], anchors) if has_owner else found.uid in anchors
    if not is_proved:
        _require_former(manifest, found)
    what, kept = f"{manifest['kind']} {found.name}", _name_keepers(found)
    # Before the check of the owner: an object that is being deleted makes way, whatever controls it.
    if found.deletion_timestamp is not None:
        raise UnusableObject(
            RefusalVerdict.WAIT, PendingCode.NAME_TERMINATING, f"{what} of the previous attempt is not gone yet{kept}"
        )
    if has_owner and not is_proved:
        owner = controller_of(found)
        raise UnusableObject(
            RefusalVerdict.FAIL,
            Reason.NAME_CONFLICT,
            f"{what} exists and is controlled by {owner.kind if owner else 'nobody'} "
            f"{owner.uid if owner else ''}, which is not this job's; it is left alone",
        )
    if found.labels.get(labels.ATTEMPT) != wanted.get(labels.ATTEMPT):
        raise UnusableObject(
            RefusalVerdict.WAIT, PendingCode.NAME_TERMINATING, f"{what} of the previous attempt is not gone yet{kept}"
        )


def _require_former(manifest: Manifest, found: Metadata) -> None:
    """Accept an object that may belong to the job, although its owner does not prove it.

    Raises:
        UnusableObject: it belongs to another client, or to a former job of this installation.
    """
    metadata = manifest["metadata"]
    wanted, former = metadata["labels"], found.labels.get(labels.JOB_UID, "")
    what = f"{manifest['kind']} {found.name}"
    if found.labels.get(labels.INSTALLATION) != wanted[labels.INSTALLATION] or (
        "ownerReferences" in metadata and not names_anchor(found, former)
    ):
        raise UnusableObject(
            RefusalVerdict.FAIL, Reason.NAME_CONFLICT, f"{what} exists and is not this installation's; it is left alone"
        )
    # The submission of this job has requested the removal of the former job's objects.
    if former != wanted[labels.JOB_UID]:
        raise UnusableObject(
            RefusalVerdict.WAIT,
            PendingCode.PREVIOUS_OBJECTS,
            f"{what} of a former job with this name is not gone yet{_name_keepers(found)}",
        )


def _name_keepers(found: Metadata) -> str:
    return name_finalizers(foreign_finalizers(found)) if found.deletion_timestamp is not None else ""


def altered_message(manifest: Manifest, created: Pod | Object | Workload) -> str:
    """Return what the cluster has changed in a new object that jobgate needs to know it again; empty if nothing."""
    changes = list(_changes(manifest, created))
    if not changes:
        return ""
    what = f"{manifest['kind']} {manifest['metadata']['name']}"
    return (
        f"a mutating webhook or policy of the cluster changes {what} when it is created, so that jobgate cannot know "
        f"it again: {'; '.join(changes)}. jobgate deletes it, and tries again"
    )


def _changes(manifest: Manifest, created: Pod | Object | Workload) -> Iterator[str]:
    wanted, found = manifest["metadata"], created.metadata
    if found.name != wanted["name"]:
        yield f'metadata.name is "{found.name}"'
    for key, value in wanted["labels"].items():
        # Other labels are for users and tools: jobgate does not read them back.
        if key.startswith(labels.PREFIX) and found.labels.get(key) != value:
            yield f"metadata.labels[{key}] is {_quote(found.labels.get(key))} instead of {_quote(value)}"
    for owner in wanted.get("ownerReferences", ()):
        actual = controller_of(found)
        if actual is None or (actual.kind, actual.name, actual.uid) != (owner["kind"], owner["name"], owner["uid"]):
            named = f"{actual.kind} {actual.name}" if actual is not None else "nothing"
            yield f"metadata.ownerReferences names {named} as the controller instead of {owner['kind']} {owner['name']}"
    for finalizer in wanted.get("finalizers", ()):
        if finalizer not in found.finalizers:
            yield f"metadata.finalizers lacks {finalizer}"
    if isinstance(created, Pod):
        policy = manifest["spec"].get("restartPolicy")
        # A restart in place would hide the end of an attempt.
        if policy is not None and created.spec.restart_policy != policy:
            yield f"spec.restartPolicy is {_quote(created.spec.restart_policy)} instead of {_quote(policy)}"
        yield from _changes_of_main_container(manifest, created)


def _changes_of_main_container(manifest: Manifest, created: Pod) -> Iterator[str]:
    """Yield what hides the end of the main container, or makes the end of an injected one the end of the replica.

    A policy may name one of the job's own containers where the job names none.
    """
    wanted = (manifest["metadata"].get("annotations") or {}).get(labels.MAIN_CONTAINER)
    actual = main_container(created)
    own = {container["name"] for container in manifest["spec"]["containers"]}
    if actual != wanted and not (wanted is None and actual in own):
        annotation = f"metadata.annotations[{labels.MAIN_CONTAINER}]"
        yield f"the main container ({annotation}) is {_quote(actual)} instead of {_quote(wanted)}"


def _quote(value: str | None) -> str:
    return "missing" if value is None else f'"{value}"'
