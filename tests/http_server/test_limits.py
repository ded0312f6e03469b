"""The decisions of the server about time and room, as tables of cases."""

import pytest

from app.http_server.limits import (
    LINGER_SECONDS,
    MIN_TAKEN,
    RESERVED_DESCRIPTORS,
    Overdue,
    SendWindow,
    ServerLimits,
    Stage,
    Standing,
    dispensable,
    overdue,
)
from app.http_server.listener import Seldom

LIMITS = ServerLimits(header_timeout=10, body_timeout=60, idle_timeout=75, send_timeout=30)


def standing(stage: Stage, waited: float, *, address: str = "a", behind: float = 0.0, name: str = "x") -> Standing[str]:
    return Standing(connection=name, address=address, stage=stage, waited=waited, behind=behind)


@pytest.mark.parametrize(
    ("stage", "allowed", "finding"),
    [
        (Stage.NEW, 10, Overdue.IDLE),
        (Stage.HEAD, 10, Overdue.HEAD),
        (Stage.BODY, 60, Overdue.BODY),
        (Stage.IDLE, 75, Overdue.IDLE),
        (Stage.REFUSED, LINGER_SECONDS, Overdue.CLOSE),
        (Stage.CLOSING, LINGER_SECONDS, Overdue.CLOSE),
    ],
)
def test_each_stage_has_its_time(stage: Stage, allowed: float, finding: Overdue) -> None:
    assert overdue(standing(stage, allowed), LIMITS) is None
    assert overdue(standing(stage, allowed + 0.1), LIMITS) is finding


def test_the_application_may_take_its_time_but_the_client_must_take_what_is_sent() -> None:
    assert overdue(standing(Stage.ANSWER, 1e6), LIMITS) is None
    assert overdue(standing(Stage.ANSWER, 1e6, behind=30), LIMITS) is None
    assert overdue(standing(Stage.ANSWER, 0, behind=31), LIMITS) is Overdue.SEND
    assert overdue(standing(Stage.SENDING, 1e6, behind=30), LIMITS) is None
    assert overdue(standing(Stage.SENDING, 0, behind=31), LIMITS) is Overdue.SEND


@pytest.mark.parametrize(
    ("looks", "began"),
    [
        ([(10, 2**20)], 0),
        ([(10, 2**20 - MIN_TAKEN + 1)], 0),
        ([(10, 2**20 - MIN_TAKEN)], 10),
        ([(10, 2**20 - MIN_TAKEN // 2), (20, 2**20 - MIN_TAKEN)], 20),
        ([(second, 2**20 - second) for second in range(100)], 0),
        ([(10, 2**20 + 100), (20, 2**20)], 0),
    ],
    ids=["nothing", "too little", "enough", "enough in two looks", "one byte a second", "more was sent"],
)
def test_a_window_ends_when_the_client_has_taken_enough(looks: list[tuple[float, int]], began: float) -> None:
    window = SendWindow(0, 2**20)
    for now, unsent in looks:
        window = window.at(now, unsent)
    assert window.began == began
    assert window.unsent == looks[-1][1]


@pytest.mark.parametrize(
    ("connections", "address", "expected"),
    [
        ([], None, None),
        (
            [standing(stage, 99) for stage in (Stage.ANSWER, Stage.BODY, Stage.SENDING, Stage.REFUSED, Stage.CLOSING)],
            None,
            None,
        ),
        ([standing(Stage.IDLE, 5, name="new"), standing(Stage.NEW, 9, name="old")], None, "old"),
        ([standing(Stage.IDLE, 99, address="few"), *[standing(Stage.HEAD, 1, name="many")] * 2], None, "many"),
        ([standing(Stage.IDLE, 99, name="other"), standing(Stage.IDLE, 1, address="b", name="own")], "b", "own"),
        ([standing(Stage.IDLE, 99, name="other"), standing(Stage.ANSWER, 1, address="b")], "b", None),
    ],
    ids=["none", "all in use", "longest wait", "most of one address", "own address", "own address in use"],
)
def test_who_makes_room(connections: list[Standing[str]], address: str | None, expected: str | None) -> None:
    assert dispensable(connections, address) == expected


@pytest.mark.parametrize(
    ("descriptors", "total", "of_one_address"),
    [
        (6000 + RESERVED_DESCRIPTORS, 6000, 3000),
        (RESERVED_DESCRIPTORS + 400, 400, 200),
        (RESERVED_DESCRIPTORS + 1000, 1000, 500),
        (10, 8, 4),
    ],
)
def test_connections_fit_into_the_descriptors(descriptors: int, total: int, of_one_address: int) -> None:
    fitting = ServerLimits().fitting(descriptors)
    assert (fitting.max_connections, fitting.max_connections_per_address) == (total, of_one_address)


def test_the_same_trouble_is_logged_once_a_period() -> None:
    seldom = Seldom(period=60)
    assert [seldom.due(now) for now in (0, 1, 59.9, 60, 61, 130)] == [0, None, None, 2, None, 1]
