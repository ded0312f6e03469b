"""The wait doubles with each failure in a row, and has a limit."""

from hypothesis import given
from hypothesis import strategies as st

from app.base.backoff import ExponentialBackoff

seconds = st.floats(min_value=0.0, max_value=1e6)
backoffs = st.builds(ExponentialBackoff, first=seconds, longest=seconds)


@given(backoffs, st.integers(max_value=0))
def test_there_is_no_wait_without_a_failure(backoff: ExponentialBackoff, failures: int) -> None:
    assert backoff.delay(failures) == 0.0


@given(backoffs)
def test_the_first_failure_waits_the_first_delay(backoff: ExponentialBackoff) -> None:
    assert backoff.delay(1) == min(backoff.first, backoff.longest)


@given(backoffs, st.integers(min_value=1, max_value=10**9))
def test_each_failure_doubles_the_wait_up_to_the_limit(backoff: ExponentialBackoff, failures: int) -> None:
    """The number of failures is not bounded: a cluster can be away for weeks."""
    delay, following = backoff.delay(failures), backoff.delay(failures + 1)
    assert 0.0 <= delay <= following <= backoff.longest
    assert following in (2 * delay, backoff.longest) or failures > 60


@given(backoffs, st.integers(min_value=0, max_value=100))
def test_the_count_ends_at_the_longest_wait_and_changes_no_wait(backoff: ExponentialBackoff, failures: int) -> None:
    count = backoff.count(failures)
    assert backoff.delay(count) == backoff.delay(failures + 1)
    assert count == failures + 1 or (count == failures and backoff.delay(failures) == backoff.longest)


def test_a_count_at_the_longest_wait_stays() -> None:
    backoff, counts = ExponentialBackoff(first=10.0, longest=300.0), [0]
    for _ in range(8):
        counts.append(backoff.count(counts[-1]))
    assert counts == [0, 1, 2, 3, 4, 5, 6, 6, 6]


def test_the_waits_of_a_pod_that_fails_again_and_again() -> None:
    backoff = ExponentialBackoff(first=10.0, longest=360.0)
    assert [backoff.delay(failures) for failures in range(8)] == [0, 10, 20, 40, 80, 160, 320, 360]
