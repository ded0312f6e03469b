"""Follows an object to its end: live on a terminal, otherwise one plain line for each change."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import typer
from rich.console import Console
from rich.live import Live

from jobgate.cli.exits import Exit, exit_of
from jobgate.cli.options import STRUCTURED, Output, one_of_many
from jobgate.cli.printing import advise, report, say
from jobgate.cli.rendering.progress import picture
from jobgate.cli.rendering.tables import State, clock, failure_text, status_line, total
from jobgate.cli.rendering.visible import visible
from jobgate.client import ConflictError, Ending, Goal, JobgateError, WaitTimeoutError, ending_of
from jobgate.client.types import JobStatus, Replica

# Replicas up to which a terminal shows each task. A job with more shows the counts of its status.
_MOST_REPLICAS: Final = 500
_REFRESHES: Final = 4  # in a second
Show = Callable[[State], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """An object that a command follows.

    Args:
        objects: its resource.
        ref: the object or its name.
        back: the arguments of `jobgate watch` that select it, for the user who detaches.
        is_own: whether this command has submitted it, so that Ctrl-C offers to cancel it.
    """

    objects: Any
    ref: Any
    back: str
    is_own: bool = False


def follow(
    followed: Followed, show: "contextlib.AbstractContextManager[Show]", *, until: Goal, timeout: float | None
) -> tuple[State | None, Exit]:
    """Show the object until the goal is reached or impossible; return its last status and the exit status.

    Ctrl-C detaches. A job that this command has submitted can then be cancelled, and is followed to its end.
    """
    last: State | None = None
    try:
        with show as one:
            for last in followed.objects.follow(followed.ref, until=until, timeout=timeout):
                one(last)
    except WaitTimeoutError as error:
        report(str(error))
        return error.last, Exit.TIMED_OUT
    except KeyboardInterrupt:
        if not _is_confirmed(followed):
            return last, Exit.INTERRUPTED
        return _cancel(followed, last)
    if last is None:
        raise AssertionError("a wait yields at least the present status")
    return last, exit_of(until, last.status.phase)


def _is_confirmed(followed: Followed) -> bool:
    """Say how to come back, and return whether the user wants to cancel what this command has submitted.

    Only a terminal gets the question. Another Ctrl-C answers no.
    """
    advise(f"\ndetached; it continues. Come back with: jobgate watch {followed.back}")
    if not (followed.is_own and _can_ask()):
        return False
    with contextlib.suppress(typer.Abort, KeyboardInterrupt):
        return typer.confirm("cancel it?", err=True)
    return False


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _cancel(followed: Followed, last: State | None) -> tuple[State | None, Exit]:
    """Cancel the job, and follow it to its end in plain lines."""
    advise("cancelling it")
    ref = last or followed.ref
    with contextlib.suppress(ConflictError):  # it has ended meanwhile
        followed.objects.cancel(ref, reason="interrupted by the user")
    ending = Followed(objects=followed.objects, ref=ref, back=followed.back)
    return follow(ending, lines(sys.stderr), until=Goal.DONE, timeout=None)


def display_of(objects: Any, output: Output, *, each: bool) -> "contextlib.AbstractContextManager[Show]":
    """Return how changes are shown. Standard output then has only results if the format is for programs.

    With `each`, a structured format prints every change as one document. Otherwise the caller prints the last one.
    """
    structured = output in STRUCTURED | {Output.NAME}
    if structured and each:
        return _documents(output)
    console = Console(highlight=False, stderr=structured)
    return _live(console, objects) if console.is_terminal else lines(sys.stderr if structured else sys.stdout)


@contextlib.contextmanager
def lines(stream: Any) -> Iterator[Show]:
    """Return a function that prints a line for each status that differs from the last one.

    If the object has failed in the end, print what is known about its first failure.
    """
    last: State | None = None

    def show(state: State) -> None:
        nonlocal last
        line = status_line(state)
        if last is None or line != status_line(last):
            say(f"{clock(state.status.observed_at or now())}  {line}", stream=stream)
        last = state

    yield show
    if text := _end_text(last):
        say(text, stream=stream)


def _end_text(state: State | None) -> str:
    return failure_text(state) if state and ending_of(state.status.phase) is Ending.FAILED else ""


@contextlib.contextmanager
def _documents(output: Output) -> Iterator[Show]:
    def show(state: State) -> None:
        say(one_of_many(state, output))

    yield show


@contextlib.contextmanager
def _live(console: Console, objects: Any) -> Iterator[Show]:
    """Return a function that replaces what the terminal shows. The times on it advance between changes."""
    state: State | None = None
    replicas: Sequence[Replica] = ()

    def show(changed: State) -> None:
        nonlocal state, replicas
        replicas = _replicas_of(objects, changed)
        state = changed
        live.refresh()

    live = Live(
        console=console,
        refresh_per_second=_REFRESHES,
        get_renderable=lambda: "" if state is None else picture(state, replicas, now()),
    )
    with live:
        yield show
    if text := _end_text(state):
        console.print(visible(text), markup=False)


def _replicas_of(objects: Any, state: State) -> Sequence[Replica]:
    """Return the replicas of a job, or none if there are too many or the gateway does not answer for the moment."""
    if not isinstance(state, JobStatus) or total(state.status.aggregate) > _MOST_REPLICAS:
        return ()
    try:
        found: Sequence[Replica] = objects.replicas(state)
    except JobgateError:
        return ()
    return found


def now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the client shows ages; it shares no clock with the gateway
