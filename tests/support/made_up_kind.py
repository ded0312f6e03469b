"""A made-up kind without pods: the minimum that a further kind must implement."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from typing_extensions import override

from app.domain.cache.limits import CacheLimits
from app.domain.errors import FieldError, Problems
from app.domain.kinds.base import Facts, Figures, PodlessKind
from app.domain.kinds.changes import immutable_changes
from app.domain.kinds.envelope import read_envelope
from app.domain.kinds.registry import PODLESS_KINDS
from app.domain.kinds.spec.model import SpecModel, read_spec
from app.domain.kinds.spec.schema import manifest_schema
from app.domain.plan import Manifest


class NotePhase(StrEnum):
    NEW = ""


class NoteSpec(SpecModel):
    text: str


class NoteFigures(Figures):
    words: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRecord:
    phase: NotePhase = NotePhase.NEW


class NoteKind(PodlessKind):
    """A note: an object with a text, which has no objects in the cluster."""

    kind = "Note"
    resource = "notes"
    word = "note"
    api_versions = ("example.com/v1",)
    mutable_fields = ("/metadata/labels", "/metadata/annotations", "/spec/text")
    record = NoteRecord
    phases = NotePhase
    figures = NoteFigures
    example: ClassVar[Manifest] = {
        "apiVersion": "example.com/v1",
        "kind": "Note",
        "metadata": {"name": "hello"},
        "spec": {"text": "hello world"},
    }
    example_patch: ClassVar[Manifest] = {"spec": {"text": "hello"}}

    @override
    def accept(self, manifest: Manifest, limits: CacheLimits) -> Manifest:
        problems = Problems()
        envelope = read_envelope(manifest, problems)
        spec = read_spec(NoteSpec, manifest.get("spec"), "/spec", problems)
        problems.raise_if_any("the Note is not valid")
        assert spec is not None, "without a problem there is a spec"
        return {**envelope, "spec": spec.model_dump(by_alias=True)}

    @override
    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        return immutable_changes(stored, new, self.mutable_fields)

    @override
    def json_schema(self) -> dict[str, Any]:
        return manifest_schema(self, NoteSpec)

    @override
    def shown(self, facts: Facts) -> NoteFigures:
        return NoteFigures(words=len(facts.manifest["spec"]["text"].split()))


@contextmanager
def a_seventh_kind() -> Iterator[NoteKind]:
    """Register the kind during the block."""
    note = NoteKind()
    PODLESS_KINDS[note.kind] = note
    try:
        yield note
    finally:
        del PODLESS_KINDS[note.kind]
