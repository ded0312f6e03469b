"""The usable cores, the default number of workers, and whether each part has a process of its own."""

from typing import Literal

import pytest

from app.base.cores import MOST, cores_within, default_workers
from app.settings import serving
from app.settings.serving import ServingSettings


@pytest.mark.parametrize(
    ("cores", "cpu_limit", "expected"),
    [
        (1, "", 1),
        (3, "", 3),
        (64, "", 64),
        (64, "max 100000\n", 64),
        (64, "150000 100000\n", 2),
        (64, "25000 100000\n", 1),
        (2, "800000 100000\n", 2),
        (2, "unknown", 2),
        (0, "", 1),
    ],
)
def test_cores_within_a_cpu_limit(cores: int, cpu_limit: str, expected: int) -> None:
    assert cores_within(cores, cpu_limit) == expected


@pytest.mark.parametrize(("cores", "expected"), [(1, 1), (2, 1), (3, 2), (5, 4), (64, MOST)])
def test_a_core_is_left_for_the_other_processes(cores: int, expected: int) -> None:
    assert default_workers(cores) == expected


@pytest.mark.parametrize(
    ("cores", "workers", "role", "expected"),
    [
        (1, None, "all", False),
        (2, None, "all", True),
        (2, None, "api", False),
        (3, None, "api", True),
        (3, None, "controller", False),
        (4, 1, "all", False),
        (1, 2, "api", True),
        (1, 2, "controller", False),
        (1, 2, "all", True),
    ],
)
def test_the_controller_has_a_process_of_its_own_if_a_core_is_free_for_it(
    cores: int,
    workers: int | None,
    role: Literal["all", "api", "controller"],
    expected: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving, "usable_cores", lambda: cores)
    assert ServingSettings(workers=workers, role=role).needs_supervisor() is expected
