"""A pod template that a manifest declares, and the way from places of the template to the user's fields."""

from collections.abc import Callable
from dataclasses import dataclass

from app.domain.plan import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTemplate:
    """`locate` makes a pointer into the template a pointer into the posted document."""

    template: Manifest
    locate: Callable[[str], str]

    @classmethod
    def written_at(cls, template: Manifest, base: str) -> "DeclaredTemplate":
        """A template that the document contains as it is, at that place."""
        return cls(template=template, locate=lambda pointer: base + pointer)
