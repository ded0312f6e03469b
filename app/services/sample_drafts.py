"""From a decoded document to a SampleSet or SampleJob that can be stored. Pure."""

from dataclasses import dataclass, replace
from typing import Any

from app.db.sample_rows import SampleRow
from app.domain.cache.edits import frozen_changes, require_editable
from app.domain.cache.kinds import CacheKind
from app.domain.cache.reconcile.values import SetRecord
from app.domain.cache.specs.limits import CacheLimits
from app.domain.cache.specs.mount_options import given_directories
from app.domain.cache.specs.sample_set import SampleSetSpec
from app.domain.errors import FieldError, InvalidManifest, shorten
from app.domain.generated_names import Suffix, named, placed
from app.domain.plan import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleDraft:
    """A manifest as it would be stored. `generated` says that another name may be drawn if this one is taken."""

    kind: CacheKind
    manifest: Manifest
    generated: bool = False

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def set_name(self) -> str:
        return self.kind.set_name(self.manifest)

    @property
    def labels(self) -> dict[str, str]:
        labels: dict[str, str] = self.manifest["metadata"].get("labels", {})
        return labels


def drafted(kind: CacheKind, document: Manifest, namespace: str, limits: CacheLimits, suffix: Suffix) -> SampleDraft:
    """The manifest with its defaults, its name and its namespace.

    Raises:
        InvalidManifest: with every error there is.
    """
    refuse_other_kinds(kind, document)
    called, generated = named(document, suffix, kind.name_max)
    manifest = kind.accept(placed(called, namespace), replace(limits, namespace=namespace))
    manifest["metadata"].pop("generateName", None)
    manifest["metadata"]["namespace"] = namespace
    return SampleDraft(kind=kind, manifest=manifest, generated=generated)


def redrafted(row: SampleRow, document: Manifest, limits: CacheLimits) -> SampleDraft:
    """The document as the next version of what is stored.

    Raises:
        InvalidManifest: it is not valid, or changes what cannot be changed, or cannot be any more.
        Conflict: nothing of it can be changed any more.
    """
    kind = row.cache_kind
    if not isinstance(row.record, SetRecord):
        require_editable(row.record)
    refuse_other_kinds(kind, document)
    draft = drafted(kind, _called(document, row.name), row.namespace, _widened(limits, row), str)
    errors = list(kind.changes(row.manifest, draft.manifest))
    if isinstance(row.record, SetRecord):
        stored, new = (SampleSetSpec.model_validate(manifest["spec"]) for manifest in (row.manifest, draft.manifest))
        errors += frozen_changes(row.record, stored, new)
    if errors:
        raise InvalidManifest("the edit changes what cannot be changed", code="ImmutableField", errors=errors)
    return draft


def _widened(limits: CacheLimits, row: SampleRow) -> CacheLimits:
    """The limits for an edit: a set keeps its cache directories, also where new sets may not have them."""
    if not isinstance(row.record, SetRecord):
        return limits
    spec = SampleSetSpec.model_validate(row.manifest["spec"])
    own = given_directories(spec.mount_options, spec.levels)
    return replace(limits, cache_roots=(*limits.cache_roots, *own))


def refuse_other_kinds(kind: CacheKind, document: Manifest) -> None:
    """Raises InvalidManifest for a document that is not of this kind in a version of it that is known."""
    errors = [
        _refusal(f"/{field}", document.get(field), accepted)
        for field, accepted in (("apiVersion", kind.api_versions), ("kind", (kind.kind,)))
        if document.get(field) not in accepted
    ]
    if errors:
        raise InvalidManifest(f"the manifest is not that of a {kind.kind}", errors=errors)


def _refusal(pointer: str, value: object, accepted: tuple[str, ...]) -> FieldError:
    expected = " or ".join(accepted)
    if value is None:
        return FieldError(pointer=pointer, code="Required", detail="the field is required", accepted=expected)
    text = f'"{shorten(value)}"' if isinstance(value, str) else "not a string"
    return FieldError(pointer=pointer, code="UnknownKind", detail=f"{text} has another route", accepted=expected)


def _called(document: Manifest, name: str) -> Manifest:
    """A document of an edit may leave its name out, but not give another."""
    metadata: Any = document.get("metadata", {})
    if not isinstance(metadata, dict):
        return document
    if metadata.get("name") not in (None, name):
        error = FieldError(pointer="/metadata/name", code="Immutable", detail="may not be changed", accepted=name)
        raise InvalidManifest("the edit is of another one", code="ImmutableField", errors=[error])
    return {**document, "metadata": {**metadata, "name": name}}
