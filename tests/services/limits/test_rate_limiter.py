"""The pace of requests to the cluster."""

from app.services.limits.rate_limiter import RateLimiter
from tests.k8s.support import ManualClock


def test_requests_are_spread_after_a_burst_of_one_second() -> None:
    clock = ManualClock()
    clock.seconds = 100.0
    limiter = RateLimiter(clock, rate=4)
    assert [limiter.delay() for _ in range(6)] == [0, 0, 0, 0, 0.25, 0.5]
    clock.seconds += 10
    assert [limiter.delay() for _ in range(5)] == [0, 0, 0, 0, 0.25]
