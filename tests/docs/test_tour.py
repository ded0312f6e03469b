"""The tours in README.md and docs/curl.md, and the session in docs/cli.md, work with `jobgate dev`."""

import re
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import session
from tests.support.documents.shell import run_script, shell_environment
from tests.support.machine.terminals import on_terminal

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```sh tour\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DEFAULT_PORT = "8080"
# Generous: `jobgate dev` initializes a database and a cluster, and the machine may be busy.
START_SECONDS = 400.0
TOUR_SECONDS = 900.0

pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("curl") and shutil.which("bash")),
        reason="they need curl and bash: apt-get install curl bash",
    ),
    pytest.mark.timeout(START_SECONDS + TOUR_SECONDS + 100),
]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of `jobgate dev` in a new directory. It must end cleanly.

    Each test has its own, because the sessions list what the gateway has.
    """
    home, port = tmp_path_factory.mktemp("dev"), free_port()
    command = [sys.executable, "-m", "app.cli", "dev", "--data-dir", str(home / "state"), "--port", str(port)]
    with (home / "gateway.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline() if ready else ""
        assert line == f"jobgate is ready at http://127.0.0.1:{port}\n", (home / "gateway.log").read_text()
        yield port
        process.send_signal(signal.SIGTERM)
        assert process.wait(90) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def environment(port: int, home: Path) -> dict[str, str]:
    return shell_environment(f"http://127.0.0.1:{port}", home)


def ran(script: str, port: int, scratch: Path) -> "subprocess.CompletedProcess[str]":
    """Run a script in the checkout, with the port and the files of this test."""
    script = script.replace(f"127.0.0.1:{DEFAULT_PORT}", f"127.0.0.1:{port}").replace("/tmp/", f"{scratch}/")
    return run_script(script, environment(port, scratch), cwd=ROOT, timeout=TOUR_SECONDS)


def tour(page: str, count: int) -> str:
    blocks = BLOCK.findall((ROOT / page).read_text())
    assert len(blocks) == count, "the blocks of a tour have the mark `sh tour`"
    return "\n".join(f"echo '== block {number}'\n{block}" for number, block in enumerate(blocks, 1))


def test_the_tour_of_the_readme_works_as_pasted(gateway: int, tmp_path: Path) -> None:
    result = ran(tour("README.md", 7), gateway, tmp_path)
    blocks = result.stdout.split("== block ")
    said = f"{result.stdout}\n{result.stderr}"
    assert result.returncode == 0, said
    assert "tour submitted to namespace default" in blocks[1], said
    assert "Running" in blocks[1].splitlines()[-1], said
    assert re.search(r"^worker\[1\] +\| step \d", blocks[2], re.MULTILINE), said
    assert "History:" in blocks[2], said
    assert "live jobs: 1 Running" in blocks[2], said
    assert "resume requested" in blocks[3], said
    assert "dryRun: true" in blocks[4], said
    assert "restartPolicy <Object>" in blocks[4], said
    assert "exit status 2" in blocks[4], said
    assert "+  cleanUpPolicy: All" in blocks[4], said
    assert "last words: the data set is not there yet" in blocks[5], said
    assert "3 succeeded" in blocks[6], said
    assert "tour deletion requested" in blocks[7], said
    (fault,) = [line for line in result.stderr.splitlines() if "standard input:" in line]
    assert re.match(r"  standard input:\d+: /spec/replicaSpecs/0/replica: ", fault), said


def test_the_tour_with_curl_works_as_pasted(gateway: int, tmp_path: Path) -> None:
    result = ran(tour("docs/curl.md", 8), gateway, tmp_path)
    blocks = result.stdout.split("== block ")
    said = f"{result.stdout}\n{result.stderr}"
    assert result.returncode == 0, said
    assert '"phase":"Queued"' in blocks[1], said
    assert "step" in blocks[2], said
    assert "event: ready" in blocks[2], said
    assert '"generation":3' in blocks[3], said
    assert re.search(r"^HTTP/1.1 (200|304)", blocks[4], re.MULTILINE), said
    assert '"dryRun": true' in blocks[5], said
    assert '"pointer": "/spec/replicaSpecs/0/replica"' in blocks[5], said
    assert "last words: the data set is not there yet" in blocks[6], said
    assert '"toReplicas": 3' in blocks[7], said
    assert '"outcome": "Reached"' in blocks[7], said
    assert '"deletedAt": "' in blocks[8], said
    assert not [line for line in result.stderr.splitlines() if "(28)" not in line], said


def test_the_session_shows_what_a_terminal_shows(gateway: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    steps = session.documented()
    seen = on_terminal(
        ["bash", "-c", session.script(steps)],
        cwd=tmp_path,
        env=environment(gateway, tmp_path) | {"TERM": "xterm", "COLUMNS": "110", "LINES": "50"},
        timeout=TOUR_SECONDS,
    )
    found = session.observed(steps, seen)
    if request.config.getoption("--update-golden"):
        session.write(found)
        return
    assert [step.comparable for step in found] == [step.comparable for step in steps]
