"""The operations on objects: get, create, update and delete. The API server and the controllers call them."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from devcluster import clock
from devcluster.errors import (
    StatusError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    invalid_value,
    not_found,
)
from devcluster.formats.objects import Object, meta, uid
from devcluster.formats.selectors import Selector
from devcluster.registry import deletion
from devcluster.registry.admission import Admission
from devcluster.registry.deletion import DeleteOptions, DeletionOutcome
from devcluster.registry.store import ObjectStore, Record
from devcluster.resources import NAMESPACES, SERVICE_ACCOUNTS, ApiResource
from devcluster.strategies import strategy_for
from devcluster.strategies.base import validate_finalizers_update, validate_metadata

# The alphabet of Kubernetes: without vowels, so that no words occur, and without similar characters.
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SYSTEM_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
                  "generateName", "namespace")  # fmt: skip
# A real API server omits these fields when they are empty.
_EMPTY_MEANS_ABSENT = ("labels", "annotations", "finalizers", "ownerReferences")
_KEPT_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


@dataclass(frozen=True, slots=True)
class ObjectAddress:
    """The object that an operation is about, or the collection if the name is empty."""

    resource: ApiResource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Registry:
    """Applies strategies, admission and the rules of deletion, and writes to the store."""

    def __init__(self, store: ObjectStore, admission: Admission) -> None:
        self.store = store
        self._admission = admission
        self._bootstrap()

    def _bootstrap(self) -> None:
        for name in _KEPT_NAMESPACES:
            if self.store.get(NAMESPACES, "", name) is None:
                self.create(ObjectAddress(NAMESPACES), {"metadata": {"name": name}})

    def get(self, address: ObjectAddress) -> Record:
        record = self.store.get(address.resource, address.namespace, address.name)
        if record is None:
            raise not_found(address.resource.plural, address.name, address.resource.group)
        return record

    def create(self, address: ObjectAddress, obj: Object, *, dry_run: bool = False) -> Record:
        resource, kind = address.resource, strategy_for(address.resource)
        metadata = meta(obj)
        _check_namespace_agrees(address, metadata)
        if resource.namespaced:
            self._admission.check_namespace(resource, address.namespace, metadata.get("name", ""))
            metadata["namespace"] = address.namespace
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = _generate_name(metadata["generateName"])
        self._admission.mutate(resource, address.namespace, obj)
        kind.prepare_create(obj)
        kind.default(obj)
        self._admission.check(resource, address.namespace, obj)
        _set_system_fields(obj, resource)
        name = metadata.get("name", "")
        causes = validate_metadata(obj, kind) + kind.validate(obj)
        if causes:
            raise invalid(resource.kind, name, causes, resource.group)
        # Quota comes last, so that an invalid object never counts against it.
        self._admission.charge_quota(resource, address.namespace, obj)
        if self.store.get(resource, address.namespace, name) is not None:
            raise already_exists(resource.plural, name, resource.group)
        if dry_run:
            return _dry_run_record(address, name, obj)
        record = self.store.put(resource, address.namespace, name, obj)
        if resource is NAMESPACES:
            # A real cluster has a controller for this. Here, pods need not wait for the account.
            self.create(ObjectAddress(SERVICE_ACCOUNTS, name), {"metadata": {"name": "default"}})
        return record

    def update(self, address: ObjectAddress, change: Callable[[Object], Object], *, dry_run: bool = False) -> Record:
        """Replace an object with the result of `change`, which receives a copy and may change it.

        An update of a subresource changes only the fields of that subresource.
        """
        current = self.get(address)
        resource, kind = address.resource, strategy_for(address.resource)
        new = change(current.fresh())
        _check_identity(address, current, new)
        _keep_system_fields(new, current.object)
        kind.prepare_update(new, current.fresh(), address.subresource)
        kind.default(new)
        causes = validate_finalizers_update(new, current.object) + validate_metadata(new, kind)
        if not address.subresource:
            causes += kind.validate_update(new, current.object)
        elif address.subresource == "status":
            causes += kind.validate_status(new, current.object)
        if causes:
            raise invalid(resource.kind, address.name, causes, resource.group)
        # An update without a change gets no new version and no event, as with a real API server.
        if new == current.object:
            return current
        if resource.has_generation and not address.subresource and new.get("spec") != current.object.get("spec"):
            meta(new)["generation"] = meta(new).get("generation", 0) + 1
        if dry_run:
            return _dry_run_record(address, address.name, new)
        if deletion.is_due(new):
            # Watchers receive the last stored state of the object; the caller receives what it wrote.
            self.store.remove(current)
            return Record.of(resource, address.namespace, address.name, new)
        return self.store.put(resource, address.namespace, address.name, new)

    def delete(self, address: ObjectAddress, options: DeleteOptions) -> tuple[Record, bool]:
        """Start or finish a deletion, and return the last state of the object and whether it is gone."""
        current = self.get(address)
        # As the admission plugin NamespaceLifecycle, which protects these three and not kube-node-lease.
        if address.resource is NAMESPACES and address.name in _KEPT_NAMESPACES[:3]:
            raise forbidden("namespaces", address.name, "this namespace may not be deleted")
        deletion.check_preconditions(address.resource, current.object, options)
        obj = current.fresh()
        outcome = deletion.decide(address.resource, obj, options)
        if options.dry_run or outcome is DeletionOutcome.KEEP:
            return current, outcome is DeletionOutcome.REMOVE
        if outcome is DeletionOutcome.MARK:
            return self.store.put(address.resource, address.namespace, address.name, obj), False
        if obj != current.object:
            # A pod is marked even if it is removed at once: watchers expect MODIFIED before DELETED.
            current = self.store.put(address.resource, address.namespace, address.name, obj)
        return self.store.remove(current), True

    def delete_collection(self, address: ObjectAddress, selector: Selector, options: DeleteOptions) -> list[Record]:
        found = [
            record
            for record in self.store.list_records(address.resource, address.namespace)
            if selector.matches(record.object)
        ]
        for record in found:
            self.delete(ObjectAddress(address.resource, record.namespace, record.name), options)
        return found


def _check_namespace_agrees(address: ObjectAddress, metadata: Object) -> None:
    given = metadata.get("namespace", "")
    if address.resource.namespaced and given not in ("", address.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _generate_name(base: str) -> str:
    # A name has at most 63 characters, 5 of which are the suffix.
    return base[:58] + "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(5))


def _set_system_fields(obj: Object, resource: ApiResource) -> None:
    """Set the system fields of a new object, and remove those that the client sent."""
    metadata = meta(obj)
    for name in (
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "selfLink",
        "managedFields",
        "generation",
    ):
        metadata.pop(name, None)
    metadata["uid"] = str(uuid4())
    metadata["creationTimestamp"] = clock.timestamp()
    if resource.has_generation:
        metadata["generation"] = 1
    _drop_empty(metadata)
    for name in ("apiVersion", "kind"):
        obj.pop(name, None)


def _drop_empty(metadata: Object) -> None:
    for name in _EMPTY_MEANS_ABSENT:
        if name in metadata and not metadata[name]:
            del metadata[name]


def check_name(address: ObjectAddress, obj: Object) -> None:
    name = meta(obj).get("name", address.name)
    if name != address.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({address.name})")


def _check_identity(address: ObjectAddress, current: Record, new: Object) -> None:
    check_name(address, new)
    metadata = meta(new)
    _check_namespace_agrees(address, metadata)
    given = metadata.get("uid")
    if given and given != uid(current.object):
        why = f"Precondition failed: UID in precondition: {given}, UID in object meta: {uid(current.object)}"
        raise conflict(address.resource.plural, address.name, why, address.resource.group)
    version = metadata.get("resourceVersion")
    if not version and not address.resource.unconditional_update:
        raise _version_required(address)
    if version and version != str(current.version):
        raise conflict(address.resource.plural, address.name, group=address.resource.group)


def _version_required(address: ObjectAddress) -> StatusError:
    cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
    return invalid(address.resource.plural, address.name, [cause], address.resource.group)


def _keep_system_fields(new: Object, current: Object) -> None:
    metadata, old = meta(new), meta(current)
    metadata["name"] = old["name"]
    metadata["resourceVersion"] = old["resourceVersion"]
    for name in _SYSTEM_FIELDS:
        if name in old:
            metadata[name] = old[name]
        else:
            metadata.pop(name, None)
    metadata.pop("managedFields", None)
    _drop_empty(metadata)
    for name in ("apiVersion", "kind"):
        new.pop(name, None)


def _dry_run_record(address: ObjectAddress, name: str, obj: Object) -> Record:
    """Return the record that a dry run would have stored."""
    return Record.of(address.resource, address.namespace, name, obj)
