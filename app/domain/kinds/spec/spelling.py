"""A posted spec in the current spelling of its kind, with a map back to the posted fields."""

from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.errors import FieldError


@dataclass(frozen=True, slots=True)
class Spelling:
    """A spec in the current spelling. `moved` maps each pointer that differs to the pointer in the posted document.

    Checks use the current spelling, while their errors must name the fields that the user wrote.
    """

    spec: Any
    moved: dict[str, str] = field(default_factory=dict)

    def original(self, error: FieldError) -> FieldError:
        """Return the error with the pointer to the field that the user wrote."""
        return replace(error, pointer=self.posted_pointer(error.pointer))

    def posted_pointer(self, pointer: str) -> str:
        """Return the pointer into the posted document for a pointer into the current spelling."""
        # The longest pointer is the most precise one: it includes the changes of the fields around it.
        for current in sorted(self.moved, key=len, reverse=True):
            if pointer == current or pointer.startswith(current + "/"):
                return self.moved[current] + pointer[len(current) :]
        return pointer
