"""What a fleet of processes does and when: pure cases with times that the test chooses."""

from app.running.workers.fleet import BACKOFF, HEALTHY_AFTER, KILLED, Action, ActionKind, Fleet, FleetTimes

DRAIN, SHUTDOWN = 5.0, 25.0
START, STOP, DRAINED, KILL = ActionKind.START, ActionKind.STOP, ActionKind.DRAIN, ActionKind.KILL
CONTROLLER = 2


def fleet() -> Fleet:
    return Fleet(["worker-0", "worker-1", "controller"], workers=2, times=FleetTimes(drain=DRAIN, shutdown=SHUTDOWN))


def running(now: float = 0.0) -> Fleet:
    """A fleet of which all processes are ready."""
    made = fleet()
    while not made.started:
        for action in made.next_actions(now):
            made.ready(action.process, now)
    return made


def state(made: Fleet) -> tuple[bool, int | None]:
    """Whether all processes were ready once, and the exit status."""
    return made.started, made.exit_status


def done(made: Fleet, now: float) -> list[tuple[ActionKind, int]]:
    return [(action.kind, action.process) for action in made.next_actions(now)]


def test_the_first_process_starts_alone_and_the_others_follow_together() -> None:
    made = fleet()
    assert made.next_actions(0.0) == [Action(START, CONTROLLER)]
    assert made.next_actions(0.1) == []
    made.ready(CONTROLLER, 1.0)
    assert done(made, 1.0) == [(START, 0), (START, 1)]
    made.ready(0, 2.0)
    assert state(made) == (False, None)
    made.ready(1, 2.0)
    assert state(made) == (True, None)
    assert made.next_change(2.0) is None


def test_a_process_that_cannot_start_ends_the_fleet_with_its_status() -> None:
    made = fleet()
    made.next_actions(0.0)
    assert made.ended(CONTROLLER, 2, 1.0) is None
    assert (made.next_actions(1.0), made.exit_status) == ([], 2)


def test_a_worker_that_cannot_start_stops_the_others_at_once() -> None:
    made = fleet()
    made.next_actions(0.0)
    made.ready(CONTROLLER, 1.0)
    made.next_actions(1.0)
    made.ready(0, 2.0)
    made.ended(1, 2, 2.0)
    assert done(made, 2.0) == [(DRAINED, 0), (STOP, 0), (STOP, CONTROLLER)]
    assert made.exit_status is None
    made.ended(0, 0, 3.0)
    made.ended(CONTROLLER, 0, 3.0)
    assert made.exit_status == 2


def test_a_process_that_ends_later_is_started_again_after_a_back_off() -> None:
    made = running()
    assert made.ended(0, 1, 10.0) == BACKOFF.delay(1)
    assert made.next_actions(10.0) == []
    assert made.next_change(10.0) == BACKOFF.delay(1)
    assert done(made, 10.0 + BACKOFF.delay(1)) == [(START, 0)]
    assert made.ended(0, 1, 11.0) == BACKOFF.delay(2)
    assert made.exit_status is None


def test_failures_are_forgotten_after_a_healthy_time() -> None:
    made = running()
    made.ended(0, 1, 10.0)
    made.next_actions(11.0)
    made.ended(0, 1, 11.0)
    made.next_actions(20.0)
    made.ready(0, 20.0)
    assert made.ended(0, 1, 20.0 + HEALTHY_AFTER) == BACKOFF.delay(1)


def test_only_one_process_starts_at_a_time_after_the_start() -> None:
    made = running()
    for process in (0, 1, CONTROLLER):
        made.ended(process, 1, 10.0)
    assert done(made, 100.0) == [(START, 0)]
    assert done(made, 100.0) == []
    made.ready(0, 101.0)
    assert done(made, 101.0) == [(START, 1)]


def test_a_rolling_restart_waits_until_all_processes_are_ready() -> None:
    made = running()
    made.restart_workers()
    assert done(made, 10.0) == [(STOP, 0)]
    made.restart_workers()  # has no effect, because a restart is in progress
    assert done(made, 11.0) == []
    assert made.ended(0, 0, 12.0) == 0.0
    assert done(made, 12.0) == [(START, 0)]
    made.ready(0, 13.0)
    assert done(made, 13.0) == [(STOP, 1)]
    made.ended(1, 0, 14.0)
    assert done(made, 14.0) == [(START, 1)]
    made.ready(1, 15.0)
    assert done(made, 15.0) == []


def test_a_rolling_restart_kills_a_worker_that_does_not_stop() -> None:
    made = running()
    made.restart_workers()
    made.next_actions(10.0)
    assert made.next_change(10.0) == SHUTDOWN
    assert done(made, 10.0 + SHUTDOWN) == [(KILL, 0)]
    assert done(made, 10.0 + SHUTDOWN) == []
    assert made.ended(0, 137, 36.0) == 0.0
    assert made.exit_status is None


def test_a_shutdown_drains_all_workers_and_stops_them_in_turn_and_the_controller_last() -> None:
    made = running()
    assert made.stop(100.0)
    assert not made.stop(100.0), "the second signal is reported"
    assert done(made, 100.0) == [(DRAINED, 0), (DRAINED, 1)]
    assert made.next_change(100.0) == DRAIN
    assert done(made, 100.0 + DRAIN) == [(STOP, 0)]
    made.ended(0, 0, 106.0)
    assert done(made, 106.0) == [(STOP, 1)]
    made.ended(1, 0, 107.0)
    assert done(made, 107.0) == [(STOP, CONTROLLER)]
    assert state(made) == (True, None)
    made.ended(CONTROLLER, 0, 108.0)
    assert made.next_actions(108.0) == []
    assert state(made) == (True, 0)


def test_a_shutdown_stops_the_workers_as_soon_as_all_of_them_have_drained() -> None:
    made = running()
    made.stop(0.0)
    assert done(made, 0.0) == [(DRAINED, 0), (DRAINED, 1)]
    made.drained(0)
    assert done(made, 1.0) == []
    made.drained(1)
    assert done(made, 1.5) == [(STOP, 0)]
    assert made.next_change(1.5) is not None
    made.ended(0, 0, 1.6)
    assert done(made, 1.6) == [(STOP, 1)]


def test_a_worker_that_ends_while_it_drains_delays_no_shutdown() -> None:
    made = running()
    made.stop(0.0)
    made.next_actions(0.0)
    made.drained(0)
    made.ended(1, 1, 1.0)
    assert done(made, 1.0) == [(STOP, 0)]


def test_a_slow_worker_does_not_take_the_turns_of_the_others() -> None:
    made = running()
    made.stop(0.0)
    made.next_actions(0.0)
    assert done(made, DRAIN) == [(STOP, 0)]
    turn = made.next_change(DRAIN)
    assert turn is not None
    assert done(made, DRAIN + turn) == [(STOP, 1)]
    assert done(made, DRAIN + 2 * turn) == [(STOP, CONTROLLER)]
    assert DRAIN + 3 * turn < SHUTDOWN


def test_processes_that_outlive_the_limit_are_killed() -> None:
    made = running()
    made.stop(0.0)
    for second in range(int(SHUTDOWN)):
        made.next_actions(float(second))
    made.ended(0, 0, 20.0)
    assert done(made, SHUTDOWN) == [(KILL, 1), (KILL, CONTROLLER)]
    assert done(made, SHUTDOWN) == []
    made.ended(1, 137, SHUTDOWN)
    made.ended(CONTROLLER, 137, SHUTDOWN)
    assert made.exit_status == KILLED


def test_a_shutdown_starts_no_process() -> None:
    made = running()
    made.ended(0, 1, 10.0)
    made.stop(10.0)
    assert done(made, 10.0) == [(DRAINED, 1)]
    assert done(made, 10.0 + DRAIN) == [(STOP, 1)]
    made.ended(1, 0, 16.0)
    assert done(made, 16.0) == [(STOP, CONTROLLER)]
