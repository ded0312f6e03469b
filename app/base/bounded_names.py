"""A bound on the number of names that a label of a metric has."""

from typing import Final

OTHERS: Final = "(others)"
"""The value for names beyond the bound. It is no name of a namespace."""


class BoundedNames:
    """The first `most` names keep themselves, and all further ones become OTHERS, for as long as the process runs."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def label(self, name: str) -> str:
        """Return the value of the label for a name."""
        if name not in self._known:
            if len(self._known) >= self._most:
                return OTHERS
            self._known.add(name)
        return name
