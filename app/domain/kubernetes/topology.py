"""Topology-aware scheduling of Kueue: what a pod template requests, and which nodes Kueue assigns to its pods."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any, Final

import msgspec

REQUIRED: Final = "kueue.x-k8s.io/podset-required-topology"
PREFERRED: Final = "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED: Final = "kueue.x-k8s.io/podset-unconstrained-topology"
PLACES: Final = (REQUIRED, PREFERRED, UNCONSTRAINED)
"""The annotations of a pod template that say where its pods are. A template has at most one of them."""
SLICE_LEVEL: Final = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE: Final = "kueue.x-k8s.io/podset-slice-size"
ANNOTATIONS: Final = (*PLACES, SLICE_LEVEL, SLICE_SIZE)
"""The annotations of a pod template that request a topology. Those of slices come together."""
PREFIX: Final = "kueue.x-k8s.io/podset-"
"""The beginning of all annotations by which Kueue's own integrations request a topology."""

MOST_OF_LEVEL: Final = 63  # characters of a requested label of nodes


class IndividualValues(msgspec.Struct, frozen=True, gc=False):
    """A value for each domain: its root, between what all of them have in common."""

    roots: tuple[str, ...] = ()
    prefix: str = ""
    suffix: str = ""


class LevelValues(msgspec.Struct, frozen=True, gc=False):
    """The values of a node label: the same for all domains of a slice, or one for each."""

    universal: str | None = None
    individual: IndividualValues = IndividualValues()

    def at(self, domain: int) -> str:
        found = self.individual
        return found.prefix + found.roots[domain] + found.suffix if self.universal is None else self.universal


class PodCounts(msgspec.Struct, frozen=True, gc=False):
    """How many pods a domain gets: the same number for all domains of a slice, or one for each."""

    universal: int | None = None
    individual: tuple[int, ...] = ()


class TopologySlice(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Domains of nodes, such as racks, in the order of the pods that they get."""

    domain_count: int = 0
    pod_counts: PodCounts = PodCounts()
    values_per_level: tuple[LevelValues, ...] = ()

    @property
    def is_consistent(self) -> bool:
        """Whether each of its domains has pods, and a value of each level."""
        counts = self.pod_counts
        lengths = [len(level.individual.roots) for level in self.values_per_level if level.universal is None]
        if counts.universal is None:
            lengths.append(len(counts.individual))
        least = min(counts.individual, default=1) if counts.universal is None else counts.universal
        return least >= 1 and self.domain_count >= 0 and all(length == self.domain_count for length in lengths)

    @property
    def size(self) -> int:
        """The number of pods that its domains get together."""
        counts = self.pod_counts
        return sum(counts.individual) if counts.universal is None else counts.universal * self.domain_count

    def ends(self) -> list[int]:
        """Return for each domain how many pods it and the domains before it get together."""
        counts = self.pod_counts
        if counts.universal is None:
            return list(accumulate(counts.individual))
        return [counts.universal * number for number in range(1, self.domain_count + 1)]


class TopologyAssignment(msgspec.Struct, frozen=True, gc=False):
    """The domains of the pods of a pod set. `levels` are the labels of nodes that identify a domain.

    It is stored in this form of Kueue's, because it can name a node for each of ten thousand pods.
    """

    levels: tuple[str, ...] = ()
    slices: tuple[TopologySlice, ...] = ()

    @property
    def size(self) -> int:
        """The number of pods that it has domains for."""
        return sum(part.size for part in self.slices)

    def is_for(self, count: int) -> bool:
        """Return whether its slices are consistent, and together have domains for at most `count` pods.

        Any client with rights on the status of Workloads can write an assignment.
        """
        levels = len(self.levels)
        fits = all(part.is_consistent and len(part.values_per_level) == levels for part in self.slices)
        return fits and self.size <= count

    def domains(self) -> list[tuple[str, ...]]:
        """Return the domain of each pod, in the order of the pods: the values of `levels` on its nodes."""
        found: list[tuple[str, ...]] = []
        for part in self.slices:
            start = 0
            for number, end in enumerate(part.ends()):
                found += [tuple(level.at(number) for level in part.values_per_level)] * (end - start)
                start = end
        return found

    def domain_of(self, index: int) -> Mapping[str, str]:
        """Return the domain of the pod with this index in the pod set, as labels of nodes.

        A pod beyond the size shares a domain with the first ones, so that no pod runs on other nodes.
        """
        index %= self.size or 1
        for part in self.slices:
            ends = part.ends()
            domain = bisect_right(ends, index)
            if domain < len(ends):
                return {key: level.at(domain) for key, level in zip(self.levels, part.values_per_level, strict=False)}
            index -= ends[-1] if ends else 0
        return {}


def keep_places(before: TopologyAssignment | None, after: TopologyAssignment | None) -> TopologyAssignment | None:
    """Return `after`, sorted so that each pod keeps its domain of `before` if `after` still has it.

    Kueue replaces a domain whose node is lost, and may return the others in another order while their pods run.
    """
    if before is None or after is None or before == after or before.levels != after.levels:
        return after
    # An earlier version has stored any assignment.
    if not before.is_for(before.size):
        return after
    known, free = before.domains(), Counter(after.domains())
    if Counter(known) == free:
        return before
    places: list[tuple[str, ...] | None] = []
    for domain in known[: after.size]:
        places.append(domain if free[domain] else None)
        free[domain] -= bool(free[domain])
    others = free.elements()
    return _assignment(after.levels, [next(others) if domain is None else domain for domain in places] + list(others))


def _assignment(levels: tuple[str, ...], domains: Sequence[tuple[str, ...]]) -> TopologyAssignment:
    """Return the assignment that gives each pod its domain: a value for each level, in the order of the pods."""
    runs = [(domain, len(list(pods))) for domain, pods in groupby(domains)]
    values = zip(*(domain for domain, _ in runs), strict=True)
    part = TopologySlice(
        domain_count=len(runs),
        pod_counts=PodCounts(individual=tuple(count for _, count in runs)),
        values_per_level=tuple(LevelValues(individual=IndividualValues(roots=roots)) for roots in values),
    )
    return TopologyAssignment(levels=levels, slices=(part,))


def topology_request(template: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the topology that an accepted pod template requests, as a field of a pod set; None if it requests none."""
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    found: dict[str, Any] = {}
    if REQUIRED in annotations:
        found["required"] = annotations[REQUIRED]
    if PREFERRED in annotations:
        found["preferred"] = annotations[PREFERRED]
    if UNCONSTRAINED in annotations:
        found["unconstrained"] = True
    if SLICE_LEVEL in annotations:
        found["podSetSliceRequiredTopology"] = annotations[SLICE_LEVEL]
        found["podSetSliceSize"] = int(annotations[SLICE_SIZE])
    return found or None
