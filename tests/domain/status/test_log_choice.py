"""Which attempt and which container a log is of if the request does not name them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.plan import Rank
from app.domain.status.failures import cause_of, failure_of
from app.domain.status.log_choice import default_attempt, has_log, why_no_log
from app.domain.status.observed import ObservedContainer
from app.domain.status.pods.containers import choose_container
from app.domain.status.records import Attempt
from app.domain.vocabulary import Evidence, Outcome

AT = datetime(2026, 1, 1, tzinfo=UTC)


def container(name: str, state: str = "terminated", code: int | None = None, **more: Any) -> ObservedContainer:
    """One that has run, unless it waits."""
    started = None if state == "waiting" else AT
    ended = AT if code is not None else None
    return ObservedContainer(
        name=name, state=state, **({"exit_code": code, "started_at": started, "finished_at": ended} | more)
    )


RAN = (container("main", code=1),)
RUNS = (container("main", "running"),)
WAITS = (container("main", "waiting"),)
NEVER_STARTED = (container("main", code=128, started_at=None),)  # StartError
SETUP_FAILED = (container("setup", code=3, init=True), container("main", "waiting"))


def attempt(number: int, containers: tuple[ObservedContainer, ...], **more: Any) -> Attempt:
    return Attempt(number=number, containers=containers, **more)


def ended(
    number: int, containers: tuple[ObservedContainer, ...] = RAN, evidence: Evidence = Evidence.CAPTURED
) -> Attempt:
    return attempt(number, containers, outcome=Outcome.FAILED, evidence=evidence)


@pytest.mark.parametrize(
    ("attempts", "number"),
    [
        ([attempt(1, ())], 1),
        ([attempt(1, RUNS)], 1),
        ([ended(1), attempt(2, ())], 1),
        ([ended(1), attempt(2, WAITS)], 1),
        ([ended(1), attempt(2, RUNS)], 2),
        ([ended(1), attempt(2, WAITS, outcome=Outcome.STOPPED, evidence=Evidence.UNAVAILABLE)], 1),
        ([ended(1), ended(2, NEVER_STARTED), attempt(3, ())], 1),
        ([ended(1), ended(2, evidence=Evidence.UNAVAILABLE), attempt(3, ())], 1),
        ([ended(1), ended(2, SETUP_FAILED), attempt(3, ())], 2),
        ([ended(1, evidence=Evidence.UNAVAILABLE), attempt(2, ())], 2),
        # It runs, waits in CrashLoopBackOff, and so has a log of its last run.
        ([ended(1), attempt(2, (container("main", "waiting", 1, restart_count=2),))], 2),
    ],
)
def test_the_newest_attempt_with_a_log_is_the_default(attempts: list[Attempt], number: int) -> None:
    assert default_attempt(attempts).number == number


@given(st.lists(st.sampled_from([RAN, RUNS, WAITS, NEVER_STARTED, SETUP_FAILED, ()]), min_size=1, max_size=6))
def test_no_log_is_hidden_by_a_newer_attempt_without_one(kinds: list[tuple[ObservedContainer, ...]]) -> None:
    attempts = [ended(number, containers) for number, containers in enumerate(kinds, 1)]
    shown = default_attempt(attempts)
    assert has_log(shown) == any(map(has_log, attempts))
    assert not any(has_log(one) for one in attempts if one.number > shown.number)


def test_the_default_attempt_has_the_requested_container() -> None:
    attempts = [ended(1, (*RAN, container("agent", code=0))), ended(2), attempt(3, ())]
    assert default_attempt(attempts, "agent").number == 1
    assert default_attempt(attempts, "main").number == 2


@pytest.mark.parametrize(
    ("containers", "requested", "name"),
    [
        ((container("setup", code=0, init=True), *RUNS), None, "main"),
        ((container("setup", "running", init=True), *WAITS), None, "main"),
        (SETUP_FAILED, None, "setup"),
        (SETUP_FAILED, "main", "main"),
        (SETUP_FAILED, "other", None),
        ((container("setup", "waiting", 3, init=True, restart_count=1), *WAITS), None, "setup"),
        # The kubelet stops a native sidecar after the failure, which also gives it an exit code.
        (
            (
                container("proxy", code=137, init=True, finished_at=AT + timedelta(seconds=1)),
                container("setup", code=3, init=True),
                *WAITS,
            ),
            None,
            "setup",
        ),
        # It may also have crashed before, or in the same second.
        (
            (
                container("proxy", code=7, init=True, finished_at=AT - timedelta(seconds=1)),
                container("setup", code=3, init=True, culprit=True),
                *WAITS,
            ),
            None,
            "setup",
        ),
        ((container("proxy", code=137, init=True), *RAN), None, "main"),
        ((container("setup", code=0, init=True),), None, "setup"),
        ((), None, None),
    ],
)
def test_the_container_whose_log_is_shown(
    containers: tuple[ObservedContainer, ...], requested: str | None, name: str | None
) -> None:
    found = choose_container(containers, requested)
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("containers", "facts"),
    [
        (SETUP_FAILED, "init container setup, exit code 3, Error"),
        (
            (container("proxy", code=3, init=True), container("setup", code=3, init=True, culprit=True), *WAITS),
            "init container setup, exit code 3, Error",
        ),
        (RAN, "exit code 3, Error"),
        ((container("main", code=3, default=True, culprit=True), container("agent", code=1)), "exit code 3, Error"),
        (
            (container("main", code=0, default=True), container("agent", code=3, culprit=True)),
            "container agent, exit code 3, Error",
        ),
    ],
)
def test_a_failure_names_the_container_that_failed_unless_it_is_the_default_one(
    containers: tuple[ObservedContainer, ...], facts: str
) -> None:
    failed = attempt(1, containers, outcome=Outcome.FAILED, exit_code=3, reason="Error")
    assert cause_of(failure_of(Rank("worker", 0), failed)) == f"worker[0] failed in attempt 1 ({facts})"


@pytest.mark.parametrize(
    ("without", "reason"),
    [
        (attempt(2, ()), "attempt 2 has not started: there is no log yet"),
        (ended(2, NEVER_STARTED), "attempt 2 ended before the container started: it has no log"),
        (
            attempt(2, RAN, evidence=Evidence.UNAVAILABLE, evidence_reason="the pod was gone"),
            "attempt 2 has no log: the pod was gone",
        ),
    ],
)
def test_the_reason_for_a_missing_log(without: Attempt, reason: str) -> None:
    assert why_no_log(without) == reason
