"""Suggests the known name that a misspelt one probably stands for."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from app.domain.errors import Problems, shorten

# A longer name is not a typing error, and comparing it takes long.
_MAX_COMPARED: Final = 64


def nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that is most similar to a misspelt one; None if no name is similar."""
    if len(name) > _MAX_COMPARED:
        return None
    prefix = name[: name.rfind("/") + 1]
    # The prefix of keys, such as jobgate.dev/, would make any two of them similar.
    if not all(candidate.startswith(prefix) for candidate in known):
        prefix = ""
    folded = {candidate.removeprefix(prefix).lower(): candidate for candidate in known}
    close = get_close_matches(name.removeprefix(prefix).lower(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def add_unknown_field(problems: Problems, pointer: str, name: str, known: Sequence[str]) -> None:
    """Report the field `name` as unknown, with the most similar known name. `pointer` leads to the field itself."""
    # The comparison is slow, and an error beyond the limit is only counted.
    meant = None if problems.full else nearest(name, known)
    hint = f'; did you mean "{meant}"?' if meant else ""
    problems.add(pointer, "UnknownField", f'unknown field "{shorten(name)}"{hint}', "one of " + ", ".join(known))
