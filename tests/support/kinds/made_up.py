"""A made-up sample kind: the minimum that a further kind must implement."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from typing_extensions import override

from app.domain.cache.limits import CacheLimits
from app.domain.errors import Problems
from app.domain.kinds.registry import SAMPLE_KINDS
from app.domain.kinds.sample_kind import Facts, Figures, SampleKind
from app.domain.kinds.spec.model import SpecModel
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


class NoteKind(SampleKind):
    """A note: an object with a text, which has no objects in the cluster."""

    name = "Note"
    resource = "notes"
    word = "note"
    api_versions = ("example.com/v1",)
    mutable_fields = ("/metadata/labels", "/metadata/annotations", "/spec/text")
    spec_model = NoteSpec
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
    def check(self, spec: Any, metadata: Mapping[str, Any], limits: CacheLimits, problems: Problems) -> None:
        """A note has no rules beside its types."""

    @override
    def make_figures(self, facts: Facts) -> NoteFigures:
        return NoteFigures(words=len(facts.manifest["spec"]["text"].split()))


@contextmanager
def a_seventh_kind() -> Iterator[NoteKind]:
    """Register the kind during the block."""
    note = NoteKind()
    SAMPLE_KINDS[note.name] = note
    try:
        yield note
    finally:
        del SAMPLE_KINDS[note.name]
