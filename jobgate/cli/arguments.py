"""Arguments that name kinds and objects, and their completion in the shell."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Final

import typer

from jobgate.cli.options import resource_of
from jobgate.cli.targets import JOBS, PLURALS, SAMPLE_JOBS, SAMPLE_SETS, KindName, TargetError, kind_named, shown_name
from jobgate.client import RetryPolicy, config
from jobgate.client.renewal import current_context

_LONGEST: Final = 1.0  # seconds that the shell waits for names
_MOST: Final = 100  # names of a resource; a user types more letters rather than read more names
_OTHERS: Final = (SAMPLE_SETS, SAMPLE_JOBS)


@dataclass(frozen=True, slots=True)
class _Query:
    """The objects of a kind whose names begin with a prefix. `before` is what a user types before their names."""

    kind: KindName
    prefix: str
    before: str = ""


def _queries(text: str) -> Sequence[_Query]:
    """Return which objects an argument may name that begins with a text."""
    kind, slash, prefix = text.rpartition("/")
    if slash:
        with contextlib.suppress(TargetError):
            return [_Query(kind_named(kind), prefix, f"{kind}/")]
        return []
    others = {resource: shown_name(resource, "") for resource in _OTHERS}
    return [
        _Query(KindName(JOBS), text),
        *(_Query(KindName(resource), "", before) for resource, before in others.items() if before.startswith(text)),
    ]


def _names(*resources: str) -> Callable[[typer.Context, str], Sequence[str]]:
    """Return the completion of an argument that names an object of one of these resources."""

    def complete(context: typer.Context, text: str) -> Sequence[str]:
        queries = [query for query in _queries(text) if query.kind.resource in resources]
        return _in_time(_find(context.params, queries)) if queries else []

    return complete


def _find(options: Mapping[str, Any], queries: Sequence[_Query]) -> Iterator[str]:
    """Yield the objects in the gateway that the options of the command select, newest first."""
    # Completion may end at any time, and a refresh token that was used but not replaced would be lost.
    selected = current_context(
        server=options.get("server"),
        namespace=options.get("namespace"),
        context=options.get("context"),
        renews=False,
    )
    with config.connect(selected, RetryPolicy(attempts=1)) as client:
        for query in queries:
            objects = resource_of(client, query.kind.resource)
            rows = objects.summaries(kind=query.kind.kind, prefix=query.prefix or None, page_size=_MOST)
            # An ended job and a live one can have the same name.
            yield from dict.fromkeys(f"{query.before}{row.name}" for row in islice(rows, _MOST))


def _in_time(names: Iterator[str]) -> Sequence[str]:
    """Return the names that arrive in time. An error ends them, because its message would garble the command line."""
    arrived: list[str] = []

    def collect() -> None:
        with contextlib.suppress(Exception):
            for name in names:
                arrived.append(name)  # noqa: PERF402 - the list always has what has arrived

    # The process ends without waiting for a daemon thread. asyncio would wait for the DNS server after its deadline.
    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(_LONGEST)
    return tuple(arrived)


_complete_job: Final = _names(JOBS)
_complete_object: Final = _names(JOBS, *_OTHERS)

Target = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A job, or KIND/NAME, such as sampleset/imagenet.",
        autocompletion=_complete_object,
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME…]",
        help="Jobs, or KIND/NAME, such as sampleset/imagenet.",
        autocompletion=_complete_object,
    ),
]
KindOrTargets = Annotated[
    list[str],
    typer.Argument(
        metavar="[KIND] NAME…",
        help="Objects, or a kind such as jobs, whose objects are listed.",
        autocompletion=_complete_object,
    ),
]
LogName = Annotated[
    str | None,
    typer.Argument(
        metavar="[JOB]",
        help="A job or its uid, JOB/TASK, JOB/TASK/RANK, or the name of a pod.",
        autocompletion=_complete_job,
    ),
]
JobNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[JOB…]", help="Names of jobs.", autocompletion=_complete_job, show_default=False),
]
ListedKind = Annotated[
    str,
    typer.Argument(
        metavar="KIND", help="jobs, or a kind or short name such as sampleset or tj.", autocompletion=lambda: PLURALS
    ),
]
FieldPath = Annotated[
    str,
    typer.Argument(
        metavar="KIND[.FIELD…]",
        help="A kind, or a field of its manifests.",
        autocompletion=lambda: [name for name in PLURALS if name != JOBS],
    ),
]
