"""Numbers of objects by kind and phase, without I/O: what each part of a list has, and the sums over the parts.

parts of a list, counted ─▶ the objects of some kinds in some phases ─▶ a number, and whether it is complete
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from app.db.lists.access_path import end_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedPart:
    """The objects of a list that have this kind and this value of `ended`; None stands for all values.

    `found` has their numbers by kind and phase. Unless it `is_complete`, there may be more.
    """

    kind: str | None = None
    ended: str | None = None
    found: Mapping[tuple[str, str], int]
    is_complete: bool

    def may_have(self, kinds: Collection[str], phases: Collection[str]) -> bool:
        """Return whether the part may have objects of these kinds and phases. An empty collection stands for all."""
        is_of_kinds = not kinds or self.kind is None or self.kind in kinds
        return is_of_kinds and (not phases or self.ended is None or self.ended in set(map(end_of, phases)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A number of objects: exact if it `is_complete`, otherwise a lower bound."""

    count: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Facets:
    """The counted parts of a list."""

    parts: Sequence[CountedPart]

    def count(self, *, kinds: Collection[str] = (), phases: Collection[str] = ()) -> Count:
        """Return the number of objects of these kinds in these phases. An empty collection stands for all."""
        parts = [part for part in self.parts if part.may_have(kinds, phases)]
        numbers = [
            number
            for part in parts
            for (kind, phase), number in part.found.items()
            if (not kinds or kind in kinds) and (not phases or phase in phases)
        ]
        return Count(count=sum(numbers), is_complete=all(part.is_complete for part in parts))
