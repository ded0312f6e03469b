"""Which suites `make test-cluster` runs for the tests that its arguments name, and how it starts and ends programs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import until
from tools.suites import test_cluster
from tools.suites.test_cluster import (
    FREEZES,
    KILLS,
    KUEUE_OUTAGES,
    NO_CONDITIONS,
    QUEUES,
    ROOT,
    SLOW,
    SUITES,
    WITH_KUEUE,
    WITH_STRICT_KUEUE,
    ControlPlane,
    NotRunnable,
    running_kueue,
    selected_suites,
)

# It starts a process that outlives it, and writes its pid a moment later.
PROGRAM = """#!/bin/sh
case $1 in
start) sleep 600 < /dev/null > /dev/null 2>&1 & touch {0}/starts; while test ! -e {0}/go; do sleep 0.05; done
       echo $! > {0}/pid.new; mv {0}/pid.new {0}/pid ;;
reset) kill "$(cat {0}/pid)" ;;
esac
"""
MAIN = "import sys; from pathlib import Path; from tools.suites import test_cluster as tool; "
MAIN += "tool.CONTROL_PLANE = Path(sys.argv.pop()); sys.exit(tool.main())"


def a_program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o700)
    return path


def runs(pid: int) -> bool:
    """Return whether the process runs; a zombie does not."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


async def test_a_signal_during_the_start_of_a_control_plane_leaves_no_process(tmp_path: Path) -> None:
    program = a_program(tmp_path / "controlplane", PROGRAM.format(tmp_path))
    environment = {name: value for name, value in os.environ.items() if name != test_cluster.KUBECONFIG}
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "tests/e2e", str(program)], cwd=ROOT, env=environment, start_new_session=True
    )
    await until((tmp_path / "starts").exists, what="the control plane starts", within=60)
    os.killpg(process.pid, signal.SIGTERM)
    (tmp_path / "go").touch()
    # There is no cluster, so the first request fails if the signal does not end the run before.
    await until(process.poll, lambda status: status is not None, what="it ends", within=60)
    await until(lambda: not runs(int((tmp_path / "pid").read_text())), what="the process is gone", within=60)


@pytest.mark.parametrize(("fails", "error", "starts"), [(2, NO_CONDITIONS, 3), (3, NO_CONDITIONS, 3), (1, "other", 1)])
def test_kueue_is_started_again_while_a_crd_has_no_status(
    fails: int, error: str, starts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = tmp_path / "starts"
    script = f"#!/bin/sh\n[ $1 = start ] || exit 0\necho >> {counted}; [ $(wc -l < {counted}) -gt {fails} ] && exit 0\n"
    script += f"echo 'error: .status.{error}: <nil>' >&2; exit 1\n"
    monkeypatch.setattr(test_cluster, "KUEUE", a_program(tmp_path / "kueue", script))
    found = ControlPlane(admin=tmp_path, gateway=None, environment=dict(os.environ))
    if starts > fails:
        with running_kueue(found, None):
            pass
    else:
        with pytest.raises(NotRunnable, match=error), running_kueue(found, None):
            pass
    assert len(counted.read_text().splitlines()) == starts


def paths(*arguments: str) -> list[tuple[str, ...]]:
    return [suite.paths for suite in selected_suites(arguments)[0]]


def test_without_a_named_test_all_suites_run() -> None:
    assert selected_suites(["-v", "-k", "pause"]) == (list(SUITES), ["-v", "-k", "pause"])


def test_quick_leaves_out_the_suites_that_take_minutes() -> None:
    quick = [suite for suite in SUITES if suite.workers > 1 and suite.paths != ("tests/crash",)]
    assert selected_suites(["--quick", "-v"]) == (quick, ["-v"])
    assert paths("--quick", "tests/crash") == [(KILLS,), (QUEUES[1],)]


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
        (
            ["tests/crash"],
            [(KILLS,), ("tests/crash",), (FREEZES,), SLOW, (QUEUES[1],), KUEUE_OUTAGES],
        ),
        ([FREEZES], [(FREEZES,)]),
        (["tests/crash/test_workers.py"], []),
        (["tests/domain"], []),
    ],
)
def test_named_tests_restrict_the_suites_that_contain_them(named: list[str], expected: list[tuple[str, ...]]) -> None:
    assert paths("--reruns", "1", *named) == expected
    assert selected_suites(["--reruns", "1", *named])[1] == ["--reruns", "1"]
