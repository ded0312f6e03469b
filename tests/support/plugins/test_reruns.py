"""Which failures `--reruns 1` of CI repeats, and what it prints."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
TESTS = """
import pathlib
import pytest

def once(name):
    mark = pathlib.Path(__file__).with_name(name)
    there = mark.exists()
    mark.touch()
    assert there, "was not there the first time"

def test_steady(): pass
def test_flaky(): once("flaky")
def test_broken(): assert False
@pytest.mark.crash
def test_lost_a_job(): once("lost")
"""


SHARED = """
names = set()

def test_own(): assert True
def test_shared():
    assert "name" not in names
    names.add("name")
"""


def run_twice(tmp_path: Path, tests: str, *more: str) -> str:
    """Run tests as CI does, and return what pytest prints. Some of them must fail."""
    file = tmp_path / "test_some.py"
    file.write_text(tests)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = crash\n")
    options = ("-p", "tests.support.plugins.reruns", "--reruns", "1", "-n", "2", "-p", "no:cacheprovider", *more)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), "-c", "pytest.ini", str(file)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return ran.stdout


def test_a_second_run_is_printed_and_crash_tests_have_none(tmp_path: Path) -> None:
    printed = run_twice(tmp_path, TESTS)
    assert "2 failed, 2 passed, 2 rerun" in printed
    cause = r"test_some\.py:\d+: AssertionError: was not there the first time"
    assert re.search(rf"^flaky: test_some\.py::test_flaky\n    {cause}$", printed, re.MULTILINE), printed
    assert "failed twice: test_some.py::test_broken" in printed
    assert "flaky: test_some.py::test_lost_a_job" not in printed


def test_a_test_that_cannot_be_repeated_is_found(tmp_path: Path) -> None:
    printed = run_twice(tmp_path, SHARED, "--rerun-all")
    assert "1 failed, 1 passed, 2 rerun" in printed
    assert "failed twice: test_some.py::test_shared" in printed
