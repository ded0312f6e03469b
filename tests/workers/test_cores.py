"""The default number of workers."""

import pytest

from app.workers.cores import MOST, workers_for


@pytest.mark.parametrize(
    ("cores", "cpu_limit", "expected"),
    [
        (1, "", 1),
        (3, "", 3),
        (64, "", MOST),
        (64, "max 100000\n", MOST),
        (64, "150000 100000\n", 2),
        (64, "25000 100000\n", 1),
        (2, "800000 100000\n", 2),
        (2, "unknown", 2),
        (0, "", 1),
    ],
)
def test_workers_for_cores_and_a_cpu_limit(cores: int, cpu_limit: str, expected: int) -> None:
    assert workers_for(cores, cpu_limit) == expected
