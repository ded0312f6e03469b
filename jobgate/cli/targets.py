"""Which objects a command is about: `NAME`, `KIND/NAME`, or `KIND` for a list."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

JOBS: Final = "jobs"
SAMPLE_SETS: Final = "samplesets"
SAMPLE_JOBS: Final = "samplejobs"


@dataclass(frozen=True, slots=True)
class KindName:
    """A resource, or one kind of jobs."""

    resource: str
    kind: str | None = None


# Plural, singular and short names, as kubectl accepts them for a resource.
_KINDS: Final = {
    KindName(JOBS): ("jobs", "job"),
    KindName(JOBS, "GenericJob"): ("genericjobs", "genericjob", "gj"),
    KindName(JOBS, "TrainingJob"): ("trainingjobs", "trainingjob", "tj"),
    KindName(JOBS, "MxJob"): ("mxjobs", "mxjob", "mx"),
    KindName(JOBS, "DIJob"): ("dijobs", "dijob", "di"),
    KindName(SAMPLE_SETS): ("samplesets", "sampleset", "ss"),
    KindName(SAMPLE_JOBS): ("samplejobs", "samplejob", "sj"),
}
_NAMES: Final = {name: kind for kind, names in _KINDS.items() for name in names}
# The kinds of manifests that are submitted.
KNOWN_KINDS: Final = frozenset({"GenericJob", "TrainingJob", "MxJob", "DIJob", "SampleSet", "SampleJob"})
PLURALS: Final = tuple(plural for plural, *_ in _KINDS.values())
ACCEPTED: Final = (
    "jobs, genericjobs (gj), trainingjobs (tj), mxjobs (mx), dijobs (di), samplesets (ss), samplejobs (sj)"
)


class TargetError(ValueError):
    """An argument does not name an object that the command can use."""


def is_kind(name: str) -> bool:
    return name.lower() in _NAMES


def kind_named(name: str) -> KindName:
    if (found := _NAMES.get(name.lower())) is None:
        raise TargetError(f"there is no kind {name}; accepted: {ACCEPTED}")
    return found


def names_of(kind: str) -> list[str]:
    """Return the names by which commands know a kind, such as trainingjobs, trainingjob and tj."""
    wanted = {KindName(JOBS, kind), KindName(f"{kind.lower()}s")}
    return [name for name, known in _NAMES.items() if known in wanted]


def target_named(text: str) -> tuple[str, str]:
    """Return the resource and the name of a target. A name alone is that of a job."""
    kind, slash, name = text.rpartition("/")
    if not name:
        raise TargetError(f"{text or 'the argument'} has no name; accepted: NAME or KIND/NAME")
    if not slash and text.lower() in PLURALS:
        raise TargetError(
            f"{text} is a kind; `jobgate list {text}` lists its objects, and job/{text} is a job of that name"
        )
    return (kind_named(kind).resource if slash else JOBS), name


def job_kind_named(target: str) -> str | None:
    """Return the kind of jobs that a target names, such as TrainingJob of tj/train; None if it names no such kind."""
    kind, slash, _ = target.rpartition("/")
    return kind_named(kind).kind if slash else None


def targets_named(words: Sequence[str]) -> list[str] | None:
    """Return the targets of `KIND NAME…`, as kubectl has it, and of `NAME…` or `KIND/NAME…`; None for a kind alone."""
    first, *names = words
    if first.lower() in PLURALS and not names:
        return None
    if first.lower() in _NAMES and names:
        return [f"{first}/{name}" for name in names]
    return list(words)


def job_named(text: str, verb: str) -> str:
    """Return the name of a job. Other resources have no such verb."""
    resource, name = target_named(text)
    if resource != JOBS:
        raise TargetError(f"{verb} {text}: accepted: the name of a job; `jobgate --help` lists the other commands")
    return name


def resource_of(kind: str | None) -> str:
    """Return the resource of a manifest. The gateway explains the kinds that it does not know."""
    return {"SampleSet": SAMPLE_SETS, "SampleJob": SAMPLE_JOBS}.get(kind or "", JOBS)


def shown_name(resource: str, name: str) -> str:
    """Return what a user types for this object."""
    return name if resource == JOBS else f"{resource.removesuffix('s')}/{name}"


def arguments_of(target: str, namespace: str | None) -> str:
    """Return the arguments with which another command selects the same object."""
    return target if namespace is None else f"{target} -n {namespace}"
