"""Follows an object to its end: live on a terminal, otherwise one plain line for each change."""

import contextlib
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from jobgate.cli.exits import Exit, exit_of
from jobgate.cli.tables import State, age, clock, status_line
from jobgate.client import Goal, WaitTimeoutError

# Seconds in which a second Ctrl-C cancels the job.
_SECOND_INTERRUPT: Final = 2.0
Show = Callable[[State], None]


@contextlib.contextmanager
def shown(console: Console) -> Iterator[Show]:
    """Return a function that shows a status, on a line that is replaced, or in a pipe on a line of its own."""
    if not console.is_terminal:
        last = ""

        def show_line(state: State) -> None:
            nonlocal last
            line = status_line(state)
            if line != last:
                last = line
                typer.echo(f"{clock(state.status.observed_at or _now())}  {line}")

        yield show_line
        return
    with Live(console=console, refresh_per_second=4) as live:
        yield lambda state: live.update(_live_text(state))


def _live_text(state: State) -> Text:
    elapsed = age(state.status.started_at, state.status.finished_at or _now())
    return Text(f"{status_line(state)}  ({elapsed})")


def follow(
    resource: Any, ref: Any, name: str, *, until: Goal = Goal.DONE, timeout: float | None = None, cancels: bool = False
) -> tuple[State | None, Exit]:
    """Show the object until the goal is reached or impossible; return its last status and the exit status.

    Ctrl-C detaches. If `cancels`, a second Ctrl-C cancels the job, and the job is followed to its end.
    """
    console = Console(highlight=False)
    last: State | None = None
    try:
        with shown(console) as show:
            for last in resource.follow(ref, until=until, timeout=timeout):
                show(last)
    except WaitTimeoutError as error:
        typer.echo(f"jobgate: {error}", err=True)
        return error.last, Exit.TIMED_OUT
    except KeyboardInterrupt:
        if cancels and _is_confirmed(name):
            resource.cancel(last or ref, reason="interrupted by the user")
            return follow(resource, ref, name, until=Goal.DONE)
        if not cancels:
            typer.echo(f"\ndetached: {name} continues", err=True)
        return last, Exit.INTERRUPTED
    if last is None:
        raise AssertionError("a wait yields at least the present status")
    return last, exit_of(until, last.status.phase)


def _is_confirmed(name: str) -> bool:
    """Say how to come back, and return whether the user presses Ctrl-C again."""
    typer.echo(f"\ndetached: {name} continues; come back with `jobgate watch {name}`", err=True)
    typer.echo("press Ctrl-C again to cancel it", err=True)
    try:
        time.sleep(_SECOND_INTERRUPT)
    except KeyboardInterrupt:
        typer.echo(f"\ncancelling {name}", err=True)
        return True
    return False


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the client shows ages; it shares no clock with the gateway
