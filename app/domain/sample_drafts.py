"""Validates the documents of sample kinds and completes them for storage."""

from dataclasses import dataclass, replace

from app.domain.cache.limits import CacheLimits
from app.domain.errors import FieldError, InvalidManifest, moved_pointers, shorten
from app.domain.kinds.posted_metadata import NAME, Suffix, add_name, name_pointer, require_namespace
from app.domain.kinds.registry import refuse_wrong_route
from app.domain.kinds.sample_kind import SampleKind
from app.domain.plan import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleDraft:
    """A valid manifest with defaults. `generated` is True if the name was drawn, so that another one may be drawn."""

    kind: SampleKind
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


def make_draft(
    kind: SampleKind, document: Manifest, namespace: str, limits: CacheLimits, suffix: Suffix
) -> SampleDraft:
    """Return the document as a new object of the namespace, with defaults and a name.

    Raises:
        InvalidManifest: the document is not valid. The error lists all problems.
    """
    refuse_wrong_route(document, kind.resource, namespace)
    _refuse_other_kinds(kind, document)
    called, generated = add_name(document, suffix, kind.name_max)
    with moved_pointers(NAME, name_pointer(generated=generated)):
        manifest = kind.accept(require_namespace(called, namespace), replace(limits, namespace=namespace))
    manifest["metadata"].pop("generateName", None)
    manifest["metadata"]["namespace"] = namespace
    return SampleDraft(kind=kind, manifest=manifest, generated=generated)


def _refuse_other_kinds(kind: SampleKind, document: Manifest) -> None:
    """Raise InvalidManifest unless the document has the kind and one of its API versions."""
    errors = [
        _refusal(f"/{field}", document.get(field), accepted)
        for field, accepted in (("apiVersion", kind.api_versions), ("kind", (kind.name,)))
        if document.get(field) not in accepted
    ]
    if errors:
        raise InvalidManifest(f"the manifest is not of kind {kind.name}", errors=errors)


def _refusal(pointer: str, value: object, accepted: tuple[str, ...]) -> FieldError:
    expected = " or ".join(accepted)
    if value is None:
        return FieldError(pointer=pointer, code="Required", detail="the field is required", accepted=expected)
    text = f'"{shorten(value)}"' if isinstance(value, str) else "not a string"
    return FieldError(
        pointer=pointer, code="UnknownKind", detail=f"{text} is not accepted on this route", accepted=expected
    )
