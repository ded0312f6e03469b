"""docs/pod-policy.md has each control once, with its level and its name in the standards."""

import re
from pathlib import Path

from app.domain.policy import CONTROLS, JOBGATE_CONTROLS

PAGE = Path(__file__).parents[2] / "docs" / "pod-policy.md"


def test_the_table_of_controls_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| (\w+) \| (baseline|restricted|all) \| ([^|]*) \|", PAGE.read_text(), re.MULTILINE)
    expected = [(control.name, str(control.level), control.title) for control in CONTROLS.values()]
    assert rows[: len(CONTROLS)] == expected
    assert sorted(rows[len(CONTROLS) :]) == sorted((name, "all", "") for name in JOBGATE_CONTROLS)
