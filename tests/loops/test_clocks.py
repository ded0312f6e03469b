"""Health by the clock: what a controller may say of itself, and how fresh its mirror of the cluster is."""

from datetime import UTC, datetime, timedelta

import pytest

from app.loops.leadership.cluster_contact import ClusterContact
from app.loops.leadership.controller_state import ControllerState, controller_condition

TTL = 15.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "remaining", "unanswered", "ok", "state", "message"),
    [
        ("Running", 10.0, 0.0, True, "Running", ""),
        ("Syncing", 10.0, 0.0, True, "Syncing", ""),
        ("Unreachable", 10.0, 0.0, True, "Unreachable", ""),
        ("WrongCluster", 10.0, 0.0, False, "WrongCluster", ""),
        ("Running", 0.0, 15.0, False, "LeaseLost", "the lease ran out 0 s ago"),
        ("Running", -40.0, 55.0, False, "LeaseLost", "the lease ran out 40 s ago"),
        ("Running", None, 1.0, True, "Waiting", "another process"),
        ("Running", None, 15.5, False, "Waiting", "the database has not answered about the lease for 16 s"),
    ],
)
def test_a_controller_is_judged_by_the_clock_of_its_lease(
    said: str,
    remaining: float | None,
    unanswered: float,
    ok: bool,  # noqa: FBT001 - a table
    state: str,
    message: str,
) -> None:
    found = controller_condition(ControllerState(said, ""), remaining=remaining, unanswered=unanswered, ttl=TTL)
    assert (found.ok, found.state) == (ok, state)
    assert message in found.message


@pytest.mark.parametrize(
    ("unanswered", "unwatched", "expected"),
    [
        (0, 0, None),
        (15, 30, None),
        (16, 0, "the API server has not answered for 16 s: refused"),
        (0, 31, "no watch has sent anything for 31 s: silent"),
        (100, 100, "the API server has not answered for 100 s: refused"),
    ],
)
def test_a_mirror_is_current_while_probe_and_watch_are_recent(
    unanswered: int, unwatched: int, expected: str | None
) -> None:
    contact = ClusterContact(timedelta(seconds=30), NOW - timedelta(seconds=unanswered))
    contact.record_probe(NOW, "refused")
    assert contact.silence(NOW, NOW - timedelta(seconds=unwatched), "silent") == expected


def test_an_answered_probe_makes_the_mirror_current_again() -> None:
    contact = ClusterContact(timedelta(seconds=30), NOW - timedelta(seconds=100), "refused")
    contact.record_probe(NOW)
    assert contact.silence(NOW, NOW, "") is None
    assert contact.error == ""
