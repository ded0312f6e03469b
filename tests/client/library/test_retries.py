"""Which requests are sent again, and when."""

import pytest

from jobgate.client.retries import Failure, RetryPolicy, failure_of, seconds_of

POLICY = RetryPolicy(attempts=3)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (429, "TooManyOpen", Failure.REFUSED),
        (503, "Overloaded", Failure.REFUSED),
        (503, "TooManyBodies", Failure.REFUSED),
        (503, "TooManyConnections", Failure.REFUSED),
        (409, "KeyInFlight", Failure.REFUSED),
        (503, "Contended", Failure.REFUSED),
        (503, "DatabaseContended", Failure.REFUSED),
        (409, "NameTaken", None),
        (503, "Unavailable", Failure.UNKNOWN),
        (502, "Http502", Failure.UNKNOWN),
        (500, "InternalError", None),
        (422, "InvalidManifest", None),
    ],
)
def test_only_passing_failures_are_repeated(status: int, code: str, expected: Failure | None) -> None:
    assert failure_of(status, code) is expected


@pytest.mark.parametrize("failure", list(Failure))
@pytest.mark.parametrize("is_repeatable", [True, False])
def test_a_request_that_may_have_been_carried_out_is_repeated_only_if_it_is_repeatable(
    failure: Failure, *, is_repeatable: bool
) -> None:
    delay = POLICY.delay(failure, attempt=1, is_repeatable=is_repeatable, random=0.0)
    assert (delay is None) == (failure is Failure.UNKNOWN and not is_repeatable)


def test_delays_double_up_to_a_limit_and_the_last_attempt_is_final() -> None:
    policy = RetryPolicy(attempts=10)
    delays = [policy.delay(Failure.NOT_SENT, attempt=n, is_repeatable=True, random=1.0) for n in range(1, 11)]
    assert delays == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, None]


@pytest.mark.parametrize(("header", "seconds"), [("2", 2.0), (None, None), ("Wed, 21 Oct", None), ("-1", 0.0)])
def test_retry_after_is_read_in_seconds(header: str | None, seconds: float | None) -> None:
    assert seconds_of(header) == seconds


@pytest.mark.parametrize(("retry_after", "expected"), [(7.0, 7.0), (61.0, None)])
def test_retry_after_is_respected_up_to_a_limit(retry_after: float, expected: float | None) -> None:
    delay = POLICY.delay(Failure.REFUSED, attempt=1, is_repeatable=True, retry_after=retry_after, random=0.0)
    assert delay == expected
