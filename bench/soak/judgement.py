"""Decides from the figures of a run what was lost or duplicated, and what grew."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Final

from app.api.shared.job_views import CACHE_BYTES
from app.k8s.session.limits import TransportLimits
from bench.soak.load import LoadFigures
from bench.soak.processes import CONTROLLER, POSTGRESQL, SUPERVISOR, WORKER, Sample

# Caches, pools and imports fill up in the first seconds of a process.
WARM_UP: Final = 20.0
MEMORY_FACTOR: Final = 1.2
_LEAST_SAMPLES: Final = 4  # of a life or of a third of the run, for a median
# All other statuses from 400 to 499 are final: `is_final` in soak.c.
_TRANSIENT: Final = frozenset({"408", "409", "429"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """By how much a process may grow from the middle of the run to its end, and in its life after the warm-up.

    `memory` is in MiB, beside the growth by `MEMORY_FACTOR`.
    """

    memory: float = 24.0
    descriptors: int = 32


# Processes of other programs have none, and are not judged.
ALLOWANCES: Final[Mapping[str, Allowance]] = {
    SUPERVISOR: Allowance(descriptors=8),
    # Its caches: rendered answers, and the addresses of 100 000 objects.
    WORKER: Allowance(memory=24 + CACHE_BYTES / 2**20 + 32),
    # Its connections to the API server.
    CONTROLLER: Allowance(descriptors=32 + TransportLimits().connections),
    # PostgreSQL keeps the files of tables open, up to its `max_files_per_process`.
    POSTGRESQL: Allowance(descriptors=1000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What exists when all accepted jobs were deleted and the controller is done."""

    jobs: int
    names: int
    remaining: int
    """Deleted jobs whose objects are not gone."""
    faults: Sequence[str]
    """What `jobgate verify` reports, in lines."""
    pods: int
    doubles: int
    """Attempts that had more than one pod."""
    without_pod: int
    """Attempts that say that they never had a pod."""
    differences: Sequence[str]
    """What the recorded attempts and the pods do not explain of each other, as sentences."""
    objects: int
    """Objects in the cluster that belong to a job."""
    phases: Mapping[str, int]


def losses(load: LoadFigures, found: Inventory) -> list[str]:
    """Return what was lost or duplicated, as sentences."""
    counts = {
        f"{load.unanswered} requests were never answered: {load.error}": load.unanswered,
        "no poll was answered": load.poll.done == 0,
        **{
            f"{count} polls of accepted jobs were answered {code}": count
            for code, count in load.poll.codes.items()
            if code.startswith("4") and code not in _TRANSIENT
        },
        f"{load.submitted} jobs were accepted, and {found.names} exist": load.submitted - found.names,
        f"{found.jobs - found.names} jobs exist twice": found.jobs - found.names,
        f"{found.doubles} attempts had more than one pod": found.doubles,
        f"{found.remaining} deleted jobs are not gone": found.remaining,
        f"{found.objects} objects of deleted jobs are left in the cluster": found.objects,
    }
    return [*(sentence for sentence, count in counts.items() if count), *found.differences, *found.faults]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A figure of one role: its medians in the thirds of the run, its slope per minute, and its growth in a life."""

    start: float | None
    middle: float | None
    end: float | None
    slope: float
    growth: float
    """The most that a process grew from the first fifth of its life after the warm-up to the last one."""
    growth_base: float
    """The figure from which it grew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleCourse:
    role: str
    lives: int
    memory: Course
    descriptors: Course
    connections: int
    """Most connections of clients, or processes of a tree, at once."""


def courses(samples: Sequence[Sample], seconds: float) -> list[RoleCourse]:
    """Return the course of each role, from the samples of warm processes."""
    ordered = sorted(samples, key=lambda sample: (sample.role, sample.pid, sample.at))
    lives: dict[str, list[list[Sample]]] = {}
    for (role, _), life in groupby(ordered, key=lambda sample: (sample.role, sample.pid)):
        lives.setdefault(role, []).append(_warm(list(life)))
    return [
        RoleCourse(
            role=role,
            lives=len(of_role),
            memory=_course([[(sample.at, sample.memory) for sample in life] for life in of_role], seconds),
            descriptors=_course([[(sample.at, sample.descriptors) for sample in life] for life in of_role], seconds),
            connections=max((sample.connections for life in of_role for sample in life), default=0),
        )
        for role, of_role in lives.items()
    ]


def _warm(life: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in life if sample.at >= life[0].at + WARM_UP]


def _course(lives: Sequence[Sequence[tuple[float, float]]], seconds: float) -> Course:
    everything = [point for life in lives for point in life]
    thirds = [
        [value for at, value in everything if third <= 3 * at / seconds < third + 1 or (third == 2 and at >= seconds)]
        for third in range(3)
    ]
    start, middle, end = (median(third) if len(third) >= _LEAST_SAMPLES else None for third in thirds)
    growths = [_growth([value for _, value in life]) for life in lives if len(life) >= _LEAST_SAMPLES]
    growth, base = max(growths, default=(0.0, 0.0))
    slope = 60 * _slope(everything)
    return Course(start=start, middle=middle, end=end, slope=slope, growth=growth, growth_base=base)


def _growth(values: Sequence[float]) -> tuple[float, float]:
    """Return the growth from the first to the last fifth, and the median of the first."""
    fifth = max(1, len(values) // 5)
    first, last = median(values[:fifth]), median(values[-fifth:])
    return last - first, first


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the straight line through the points with the least squares, 0 for too few points."""
    if len(points) < _LEAST_SAMPLES:
        return 0.0
    mean_at = sum(at for at, _ in points) / len(points)
    mean = sum(value for _, value in points) / len(points)
    spread = sum((at - mean_at) ** 2 for at, _ in points)
    return sum((at - mean_at) * (value - mean) for at, value in points) / spread if spread else 0.0


def growth_of_descriptors(found: Sequence[RoleCourse]) -> list[str]:
    """Return the roles whose descriptors grew beyond the bound, as sentences."""
    return [
        f"the {name} has {after:.0f} descriptors after {before:.0f} {when}"
        for course in found
        if course.role in ALLOWANCES
        for name, when, before, after in _steps(course.role, course.descriptors)
        if after > before + ALLOWANCES[course.role].descriptors
    ]


def growth_of_memory(found: Sequence[RoleCourse]) -> list[str]:
    """Return the roles whose memory grew beyond the bound, as sentences."""
    return [
        f"the {name} has {after:.0f} MiB after {before:.0f} MiB {when}"
        for course in found
        if course.role in ALLOWANCES
        for name, when, before, after in _steps(course.role, course.memory)
        if after > MEMORY_FACTOR * before + ALLOWANCES[course.role].memory
    ]


def _steps(role: str, course: Course) -> list[tuple[str, str, float, float]]:
    steps = [(role, "in the life of a process", course.growth_base, course.growth_base + course.growth)]
    if course.middle is not None and course.end is not None:
        steps.append((role, "in the middle of the run", course.middle, course.end))
    return steps
