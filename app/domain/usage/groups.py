"""Jobs whose usage is added up together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

OTHER: Final = "(other)"
"""The queue and the labels of jobs of a namespace that has too many groups. No queue and no label is called so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageGroup:
    """What the jobs of a group have in common. `queue` is empty without a queue, `user_id` where only a name is known.

    `labels` are those by which the installation adds up, as far as the jobs have them, sorted by key.
    """

    namespace: str
    user_id: str
    user_name: str
    kind: str
    queue: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def whole(self) -> "UsageGroup":
        """The group of all jobs of the namespace, whose sums are stored beside those of its groups."""
        return UsageGroup(namespace=self.namespace, user_id="", user_name="", kind="")

    @property
    def coarse(self) -> "UsageGroup":
        """The group without what a client chooses freely: in place of its queue and of each label is `OTHER`."""
        labels = tuple((key, OTHER) for key, _ in self.labels)
        return replace(self, queue=OTHER if self.queue else "", labels=labels)


def chosen_labels(labels: Mapping[str, str], keys: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the labels with these keys."""
    return tuple((key, labels[key]) for key in sorted(keys) if key in labels)
