"""A posted spec in the current spelling of its kind, and the way back to what the user wrote."""

from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.errors import FieldError


@dataclass(frozen=True, slots=True)
class Spelling:
    """A spec in the current spelling. `moved` maps each pointer that differs to the pointer in the posted document.

    Checks work on the current spelling, and their errors must name the place that the user wrote.
    """

    spec: Any
    moved: dict[str, str] = field(default_factory=dict)

    def original(self, error: FieldError) -> FieldError:
        """The error at the place that the user wrote."""
        return replace(error, pointer=self.written_at(error.pointer))

    def written_at(self, pointer: str) -> str:
        """The pointer in the posted document to what is at this pointer of the current spelling."""
        for current in sorted(self.moved, key=len, reverse=True):
            if pointer == current or pointer.startswith(current + "/"):
                return self.moved[current] + pointer[len(current) :]
        return pointer
