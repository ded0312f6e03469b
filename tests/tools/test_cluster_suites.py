"""Which suites `make test-cluster` runs for the tests that its arguments name."""

import pytest

from tools.suites.test_cluster import FREEZES, QUEUES, ROOT, SUITES, WITH_KUEUE, WITH_STRICT_KUEUE, selected_suites


def paths(*arguments: str) -> list[tuple[str, ...]]:
    return [suite.paths for suite in selected_suites(arguments)[0]]


def test_without_a_named_test_all_suites_run() -> None:
    assert selected_suites(["-v", "-k", "pause"]) == (list(SUITES), ["-v", "-k", "pause"])


def test_quick_leaves_out_the_suites_that_run_alone_for_minutes() -> None:
    assert selected_suites(["--quick", "-v"]) == ([suite for suite in SUITES if suite.workers > 1], ["-v"])
    assert paths("--quick", "tests/crash") == [("tests/crash",), (QUEUES[1],)]


def test_every_suite_names_tests_that_exist() -> None:
    for suite in SUITES:
        for name in suite.paths + suite.left_out:
            file, _, test = name.partition("::")
            assert (ROOT / file).exists(), name
            assert not test or f"def {test}(" in (ROOT / file).read_text(), name


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        # Of the tests that a directory contains, each runs in its own suite.
        (["tests/behaviour"], [("tests/behaviour",), (QUEUES[0],), WITH_STRICT_KUEUE]),
        ([f"{QUEUES[0]}/test_eviction.py"], [(f"{QUEUES[0]}/test_eviction.py",)]),
        (["tests/behaviour/phases/test_pause.py::test_x[a]"], [("tests/behaviour/phases/test_pause.py::test_x[a]",)]),
        (
            ["tests/conformance", "tests/e2e/test_dev.py"],
            [("tests/conformance",), ("tests/e2e/test_dev.py",), WITH_KUEUE],
        ),
        (["tests/conformance/test_kueue.py"], [("tests/conformance/test_kueue.py",)]),
        (["tests/crash"], [("tests/crash",), (FREEZES,), ("tests/crash/test_soak.py",), (QUEUES[1],)]),
        ([FREEZES], [(FREEZES,)]),
        (["tests/crash/test_workers.py"], []),
        (["tests/domain"], []),
    ],
)
def test_named_tests_restrict_the_suites_that_contain_them(named: list[str], expected: list[tuple[str, ...]]) -> None:
    assert paths("--reruns", "1", *named) == expected
    assert selected_suites(["--reruns", "1", *named])[1] == ["--reruns", "1"]
