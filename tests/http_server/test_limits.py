"""Timeouts and limits of connections, as tables of cases."""

import pytest

from app.http_server.accepting import LogThrottle
from app.http_server.limits import (
    LINGER_SECONDS,
    MIN_TAKEN,
    RESERVED_DESCRIPTORS,
    ConnectionStage,
    ConnectionState,
    Overdue,
    SendWindow,
    ServerLimits,
    connection_to_displace,
    overdue,
)

LIMITS = ServerLimits(header_timeout=10, body_timeout=60, idle_timeout=75, send_timeout=30)


def state(
    stage: ConnectionStage, waited: float, *, address: str = "a", behind: float = 0.0, name: str = "x"
) -> ConnectionState[str]:
    return ConnectionState(connection=name, address=address, stage=stage, waited=waited, behind=behind)


@pytest.mark.parametrize(
    ("stage", "allowed", "finding"),
    [
        (ConnectionStage.NEW, 10, Overdue.IDLE),
        (ConnectionStage.HEAD, 10, Overdue.HEAD),
        (ConnectionStage.BODY, 60, Overdue.BODY),
        (ConnectionStage.IDLE, 75, Overdue.IDLE),
        (ConnectionStage.REFUSED, LINGER_SECONDS, Overdue.CLOSE),
        (ConnectionStage.CLOSING, LINGER_SECONDS, Overdue.CLOSE),
    ],
)
def test_each_stage_has_its_timeout(stage: ConnectionStage, allowed: float, finding: Overdue) -> None:
    assert overdue(state(stage, allowed), LIMITS) is None
    assert overdue(state(stage, allowed + 0.1), LIMITS) is finding


def test_reading_an_answer_has_a_timeout_and_computing_it_has_none() -> None:
    assert overdue(state(ConnectionStage.ANSWER, 1e6), LIMITS) is None
    assert overdue(state(ConnectionStage.ANSWER, 1e6, behind=30), LIMITS) is None
    assert overdue(state(ConnectionStage.ANSWER, 0, behind=31), LIMITS) is Overdue.SEND
    assert overdue(state(ConnectionStage.SENDING, 1e6, behind=30), LIMITS) is None
    assert overdue(state(ConnectionStage.SENDING, 0, behind=31), LIMITS) is Overdue.SEND


@pytest.mark.parametrize(
    ("measurements", "began"),
    [
        ([(10, 2**20)], 0),
        ([(10, 2**20 - MIN_TAKEN + 1)], 0),
        ([(10, 2**20 - MIN_TAKEN)], 10),
        ([(10, 2**20 - MIN_TAKEN // 2), (20, 2**20 - MIN_TAKEN)], 20),
        ([(second, 2**20 - second) for second in range(100)], 0),
        ([(10, 2**20 + 100), (20, 2**20)], 0),
    ],
    ids=["nothing", "too little", "enough", "enough in two steps", "one byte a second", "more was sent"],
)
def test_a_window_ends_when_the_client_has_taken_enough(measurements: list[tuple[float, int]], began: float) -> None:
    window = SendWindow(0, 2**20)
    for now, unsent in measurements:
        window = window.at(now, unsent)
    assert window.began == began
    assert window.unsent == measurements[-1][1]


@pytest.mark.parametrize(
    ("connections", "address", "expected"),
    [
        ([], None, None),
        (
            [
                state(stage, 99)
                for stage in (
                    ConnectionStage.ANSWER,
                    ConnectionStage.BODY,
                    ConnectionStage.SENDING,
                    ConnectionStage.REFUSED,
                    ConnectionStage.CLOSING,
                )
            ],
            None,
            None,
        ),
        ([state(ConnectionStage.IDLE, 5, name="new"), state(ConnectionStage.NEW, 9, name="old")], None, "old"),
        (
            [state(ConnectionStage.IDLE, 99, address="few"), *[state(ConnectionStage.HEAD, 1, name="many")] * 2],
            None,
            "many",
        ),
        (
            [state(ConnectionStage.IDLE, 99, name="other"), state(ConnectionStage.IDLE, 1, address="b", name="own")],
            "b",
            "own",
        ),
        ([state(ConnectionStage.IDLE, 99, name="other"), state(ConnectionStage.ANSWER, 1, address="b")], "b", None),
    ],
    ids=["none", "all in use", "longest wait", "most of one address", "own address", "own address in use"],
)
def test_the_longest_waiting_connection_of_the_busiest_address_is_displaced(
    connections: list[ConnectionState[str]], address: str | None, expected: str | None
) -> None:
    assert connection_to_displace(connections, address) == expected


@pytest.mark.parametrize(
    ("descriptors", "total", "of_one_address"),
    [
        (6000 + RESERVED_DESCRIPTORS, 6000, 3000),
        (RESERVED_DESCRIPTORS + 400, 400, 200),
        (RESERVED_DESCRIPTORS + 1000, 1000, 500),
        (10, 8, 4),
    ],
)
def test_connections_are_limited_by_file_descriptors(descriptors: int, total: int, of_one_address: int) -> None:
    fitting = ServerLimits().fitting(descriptors)
    assert (fitting.max_connections, fitting.max_connections_per_address) == (total, of_one_address)


def test_log_lines_are_limited_to_one_per_period() -> None:
    throttle = LogThrottle(period=60)
    assert [throttle.admit(now) for now in (0, 1, 59.9, 60, 61, 130)] == [0, None, None, 2, None, 1]
