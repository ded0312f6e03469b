"""`make fuzz` runs the property tests with a printed seed, and prints the command that repeats a failure."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tools.suites.fuzz

ROOT = Path(__file__).parents[2]
PROPERTIES = "tests/domain/access/test_credentials.py"


def fuzz(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "tools.suites.fuzz", "--jobs=1", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_round_runs_only_property_tests() -> None:
    status, output = fuzz("--seed=7", PROPERTIES)
    assert status == 0, output
    assert output.startswith("seed 7\n")
    properties = len(re.findall(r"^@given", (ROOT / PROPERTIES).read_text(), re.MULTILINE))
    assert f"{properties} passed" in output


def test_a_round_without_a_property_test_is_a_failure() -> None:
    status, output = fuzz("--seed=7", "tests/domain/test_errors.py")
    assert status != 0
    assert "there are no property tests under tests/domain/test_errors.py" in output


def test_a_failure_prints_the_command_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert tools.suites.fuzz._verdict(7, ["tests/domain", "tests/db"], 1) == 1
    assert capsys.readouterr().out == 'to repeat: make fuzz ARGS="--seed=7 tests/domain tests/db"\n'


def test_the_time_limit_stops_a_round() -> None:
    status, output = fuzz("--seconds=0.01", PROPERTIES)
    assert status == 0, output
    assert re.search(r"the time limit stopped the round of seed \d+", output)
    assert "0 whole rounds passed" in output
