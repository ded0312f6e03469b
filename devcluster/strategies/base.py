"""The rules that all kinds share: metadata, and the separation of spec and status."""

from devcluster.errors import FieldCause, forbidden_field, invalid_value, required
from devcluster.formats import names
from devcluster.formats.objects import Object, is_terminating, meta

_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_OWNER_FIELDS = (
    ("apiVersion", "version must not be empty"),
    ("kind", "must not be empty"),
    ("name", "must not be empty"),
    ("uid", "must not be empty"),
)
# Kubernetes' limit on the keys and values of one object.
_TOTAL_ANNOTATIONS = 256 * 1024


class Strategy:
    """The strategy of a kind without rules of its own, and the base class of all strategies."""

    # Whether the status is a subresource, so that an update of the object does not change it.
    split_status = False

    def name_problem(self, name: str) -> str | None:
        return names.dns_subdomain(name)

    def prepare_create(self, obj: Object) -> None:
        """Remove the fields that a client may not set on create."""
        if self.split_status:
            obj.pop("status", None)

    def default(self, obj: Object) -> None:
        """Set the defaults of absent fields."""

    def validate(self, obj: Object) -> list[FieldCause]:
        """Return the causes for which a new object is invalid, other than its metadata."""
        del obj
        return []

    def warnings(self, obj: Object) -> list[str]:
        """Return what the API server warns about when the object is created."""
        del obj
        return []

    def validate_update(self, new: Object, old: Object) -> list[FieldCause]:
        del new, old
        return []

    def validate_status(self, new: Object, old: Object) -> list[FieldCause]:
        """Return the causes for which an update of the status is invalid."""
        del new, old
        return []

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        """Undo changes that an update may not make.

        An update of the object keeps the old status, and an update of the status keeps everything else. A binding
        changes both.
        """
        if not self.split_status or subresource == "binding":
            return
        if subresource == "status":
            for name in (new.keys() | old.keys()) - {"metadata", "status"}:
                _copy(name, old, new)
            # As in Kubernetes: old kubelets wrote wrong owner references with a status, which broke garbage collection.
            _copy("ownerReferences", meta(old), meta(new))
        else:
            _copy("status", old, new)


def _copy(name: str, source: Object, target: Object) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def validate_metadata(obj: Object, kind: Strategy) -> list[FieldCause]:
    metadata = meta(obj)
    name = metadata.get("name", "")
    causes: list[FieldCause] = []
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    wrong = kind.name_problem(name) if name else None
    if wrong:
        causes.append(invalid_value("metadata.name", name, wrong))
    causes += _validate_labels(metadata)
    for owner in metadata.get("ownerReferences") or []:
        causes += [
            invalid_value(f"metadata.ownerReferences.{field}", "", why)
            for field, why in _OWNER_FIELDS
            if not owner.get(field)
        ]
    for index, finalizer in enumerate(metadata.get("finalizers") or []):
        wrong = names.qualified_name(finalizer)
        # A name without a domain is reserved for Kubernetes' own finalizers.
        if not wrong and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            wrong = "name is neither a standard finalizer name nor is it fully qualified"
        if wrong:
            causes.append(invalid_value(f"metadata.finalizers[{index}]", finalizer, wrong))
    return causes


def _validate_labels(metadata: Object) -> list[FieldCause]:
    causes = []
    for key, value in (metadata.get("labels") or {}).items():
        wrong = names.qualified_name(key)
        if wrong:
            causes.append(invalid_value("metadata.labels", key, wrong))
        wrong = names.label_value(value)
        if wrong:
            causes.append(invalid_value("metadata.labels", value, wrong))
    size = 0
    for key, value in (metadata.get("annotations") or {}).items():
        # The keys of annotations may have capitals, also in their prefix.
        wrong = names.qualified_name(key.lower())
        if wrong:
            causes.append(invalid_value("metadata.annotations", key, wrong))
        size += len(key.encode()) + len(value.encode())
    if size > _TOTAL_ANNOTATIONS:
        why = f"may not be more than {_TOTAL_ANNOTATIONS} bytes"
        causes.append(FieldCause("FieldValueTooLong", f"Too long: {why}", "metadata.annotations"))
    return causes


def validate_finalizers_update(new: Object, old: Object) -> list[FieldCause]:
    if not is_terminating(old):
        return []
    before = meta(old).get("finalizers") or []
    added = [name for name in meta(new).get("finalizers") or [] if name not in before]
    if not added:
        return []
    listed = ", ".join(f'"{name}"' for name in added)
    why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [forbidden_field("metadata.finalizers", why)]
