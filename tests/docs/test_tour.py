"""The commands of the tour in README.md work with `jobgate dev`."""

import os
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

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```sh tour\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DEFAULT_PORT = "8080"
# Generous: `jobgate dev` initializes a database and a cluster, and the machine may be busy.
START_SECONDS = 240.0
TOUR_SECONDS = 300.0


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def gateway(tmp_path: Path, port: int) -> Iterator[str]:
    """`jobgate dev` in a new directory. It must end cleanly."""
    command = [sys.executable, "-m", "app.cli", "dev", "--data-dir", str(tmp_path / "state"), "--port", str(port)]
    with (tmp_path / "gateway.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline() if ready else ""
        assert line == f"jobgate is ready at http://127.0.0.1:{port}\n", (tmp_path / "gateway.log").read_text()
        yield line.split()[-1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(90) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def script(port: int, scratch: Path) -> str:
    blocks = BLOCK.findall((ROOT / "README.md").read_text())
    assert len(blocks) == 8, "the blocks of the tour have the mark `sh tour`"
    text = "\n".join(f"echo '== block {number}'\n{block}" for number, block in enumerate(blocks, 1))
    return text.replace(f"127.0.0.1:{DEFAULT_PORT}", f"127.0.0.1:{port}").replace("/tmp/", f"{scratch}/")


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="the tour needs curl and bash")
@pytest.mark.timeout(600)
def test_the_tour_works_as_pasted(gateway: str, port: int, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", "-u", "-c", script(port, tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TOUR_SECONDS,
        check=False,
    )
    blocks = ran.stdout.split("== block ")
    said = f"{ran.stdout}\n{ran.stderr}"
    assert ran.returncode == 0, said
    assert gateway in script(port, tmp_path)
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
    assert not [line for line in ran.stderr.splitlines() if "(28)" not in line], said
