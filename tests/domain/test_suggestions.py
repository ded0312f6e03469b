"""The known name that a misspelt one probably stands for."""

import pytest

from app.domain.suggestions import nearest

_KEYS = ("jobgate.dev/autoscale", "jobgate.dev/keep", "jobgate.dev/ttl-seconds-after-finished")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("jobgate.dev/autoscaling", "jobgate.dev/autoscale"),
        ("jobgate.dev/ttl-seconds-after-finish", "jobgate.dev/ttl-seconds-after-finished"),
        ("jobgate.dev/ttl", None),
        ("jobgate.dev/nothing", None),
        ("jobgat.dev/keep", "jobgate.dev/keep"),
    ],
)
def test_the_common_prefix_of_keys_makes_them_not_similar(name: str, meant: str | None) -> None:
    assert nearest(name, _KEYS) == meant
