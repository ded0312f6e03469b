"""Which jobs a command is about: those that are named, or those that filters select."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from jobgate.cli.durations import seconds
from jobgate.cli.following import now
from jobgate.cli.printing import report
from jobgate.cli.targets import TargetError
from jobgate.client.calls import Filters
from jobgate.client.types import JobPhase, SampleJobPhase, SetPhase

if TYPE_CHECKING:
    from jobgate.client import Client

Selector = Annotated[str | None, typer.Option("-l", "--selector", help="Labels, as in kubectl.", show_default=False)]
_PHASES: Final = {phase.lower(): phase for phases in (JobPhase, SetPhase, SampleJobPhase) for phase in phases}


def _phase(text: str) -> str:
    """Return the phase as the gateway writes it; it explains one that this client does not know."""
    return str(_PHASES.get(text.lower(), text))


Phases = Annotated[
    list[str] | None,
    typer.Option("--phase", parser=_phase, metavar="PHASE", help="Only this phase; repeatable.", show_default=False),
]
Mine = Annotated[bool, typer.Option("--mine", help="Only those of this user.")]
Since = Annotated[
    float | None,
    typer.Option("--since", parser=seconds, metavar="DURATION", help="Created within this time.", show_default=False),
]
_PAGE: Final = 500  # objects of one request
_ME: Final = "me"  # the caller, as a value of `createdBy`


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The filters of a command. `since` is an age in seconds."""

    selector: str | None = None
    phases: Sequence[str] | None = None
    mine: bool = False
    since: float | None = None

    @property
    def is_given(self) -> bool:
        return bool(self.selector or self.phases or self.mine or self.since is not None)

    def filters(self, at: datetime, phases: Collection[str] = ()) -> Filters:
        """Return the filters of a list. `phases` apply unless the user has given others."""
        return Filters(
            label_selector=self.selector,
            phase=list(self.phases or phases) or None,
            created_by=_ME if self.mine else None,
            created_after=None if self.since is None else at - timedelta(seconds=self.since),
        )


def select_jobs(
    client: "Client",
    names: Sequence[str],
    selection: Selection,
    verb: str,
    *,
    phases: Collection[str] = (),
    leftovers: bool = False,
) -> list[str]:
    """Return the given names, otherwise those of the jobs that the filters select, oldest first.

    Args:
        client: reads the jobs of its namespace.
        names: the names that the user has given.
        selection: the filters that the user has given.
        verb: the command, for errors.
        phases: the phases of jobs with which the command can do something.
        leftovers: whether it can also do something with ended jobs of which replicas still run.

    Raises:
        TargetError: there are neither names nor filters, or both.
    """
    if bool(names) == selection.is_given:
        given = "both are given" if names else "neither is given"
        raise TargetError(f"{verb}: accepted: names of jobs, or filters such as -l, --phase or --mine; {given}")
    if names:
        return list(names)
    filters = selection.filters(now(), phases) | Filters(page_size=_PAGE)
    found = list(client.jobs.summaries(**filters))
    if leftovers and not selection.phases:
        found += client.jobs.summaries(**filters | Filters(phase=None, still_running=True))
    found.reverse()  # jobs of the same time stay in the order of their creation
    found.sort(key=lambda job: job.created_at)
    selected = list(dict.fromkeys(f"job/{job.name}" for job in found))  # a job may end between the two lists
    if not selected:
        report(f"{verb}: no job matches")
    return selected
