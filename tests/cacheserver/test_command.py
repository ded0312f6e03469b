"""The job commands, and the page that documents them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from app.domain.cache.vocabulary import JobType
from cacheserver.cli import runtime
from cacheserver.options import SyncRequest, WarmupRequest, decode
from cacheserver.programs.secrets import ENVIRONMENT
from tests.support.cache.cache_server import ROOT
from tests.support.cache.juicefs import needs_juicefs

PAGE = (ROOT / "docs" / "cache-runtime.md").read_text()


def command(*arguments: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "cacheserver", *arguments],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data" / "a").mkdir(parents=True)
    (tmp_path / "data" / "a" / "1").write_text("1")
    (tmp_path / "data" / "2").write_text("2")
    return tmp_path / "data"


def test_rmr_removes_and_does_not_sync(data: Path) -> None:
    ran = command("rmr", f"--dataDir={data}", f"--paths={data}/a", "--paths", f"{data}/2")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert list(data.iterdir()) == []


def test_clear_empties_cache_directories(data: Path) -> None:
    ran = command("clear", "--driver=juicefs", f"--cacheDirs={data}", f"--paths={data}/*")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert list(data.iterdir()) == []


@needs_juicefs
def test_sync_takes_options_from_standard_input(data: Path) -> None:
    ends = {"source": f"file://{data}/a/", "destination": f"file://{data}/copy/"}
    options = {**ends, "threads": 2, "allowed-directories": [str(data)]}
    ran = command("sync", f"--dataDir={data}", "--options", "-", text=json.dumps(options))
    assert (ran.returncode, ran.stdout) == (0, "1 files found\n")
    assert (data / "copy" / "1").read_text() == "1"


FAILED = {
    "a job that fails": (["rmr", "--dataDir={data}", "--paths={data}/none"], 1, "does not exist"),
    "no data directory": (["rmr", "--paths=/x"], 1, "option dataDir not set"),
    "a hostile name": (["rmr", "--dataDir={data}", "--paths={data}/n\x1b[2J\u202ee"], 1, "n\\x1b[2J\\u202ee"),
    "no paths": (["rmr", "--dataDir={data}"], 1, "option of paths cannot be empty"),
    "an unknown driver": (["clear", "--driver=alluxio"], 2, "driver alluxio not found"),
    "an unknown option": (["rmr", "--path=/x"], 2, "unknown option path"),
    "a wrong value": (["sync", "--threads=many"], 2, "Expected `int`"),
    "no number": (["warmup", "--dataDir={data}", "--partitions=2"], 1, "host name must end in"),
    "no uri": (["sync", "--source=--help", "--destination=x"], 1, "must be URIs"),
}


@pytest.mark.parametrize(("arguments", "code", "message"), FAILED.values(), ids=FAILED)
def test_failures_have_a_message_and_an_exit_status(
    data: Path, arguments: list[str], code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTNAME", "laptop")
    ran = command(*(argument.format(data=data) for argument in arguments))
    assert ran.returncode == code, ran.stderr
    assert message in ran.stderr


def test_options_of_the_controller_are_understood() -> None:
    sync = decode(JobType.SYNC, b'{"source": "s3://b/", "destination": "file:///mnt/S/", "force-update": true}')
    assert sync == SyncRequest(source="s3://b/", destination="file:///mnt/S/", force_update=True)
    warmup = decode(JobType.WARMUP, b'{"paths": ["/mnt/S"], "partitions": 2, "strategyName": "random", "threads": 5}')
    assert warmup == WarmupRequest(paths=("/mnt/S",), partitions=2, strategyName="random", threads=5)


def test_the_page_has_every_flag_of_the_server() -> None:
    server = typer.main.get_command(runtime).commands["server"]  # type: ignore[attr-defined]
    flags = {flag for parameter in server.params for flag in parameter.opts if flag != "--help"}
    assert flags == set(re.findall(r"`(--[\w-]+)`", PAGE.partition("| flag |")[2].partition("\n\n")[0]))


def test_the_page_has_every_storage_whose_keys_are_hidden() -> None:
    rows = re.findall(r"^\| (\w+) \| `([A-Z_0-9]+)`, `([A-Z_0-9]+)` \|$", PAGE, re.MULTILINE)
    assert {scheme: (access, secret) for scheme, access, secret in rows} == dict(ENVIRONMENT)


@pytest.mark.parametrize("job", ["server", "sync"])
def test_the_runtime_starts_without_the_gateways_code(job: str) -> None:
    """The program starts in every pod of a set, and again in the hook of each, so its start must be fast."""
    program = (
        "import sys; from jobgate.__main__ import main; sys.argv = ['jobgate', 'cache-runtime', *sys.argv[1:]]\n"
        "prefixes = ('app.', 'cacheserver.', 'sqlalchemy', 'fastapi')\n"
        "try: main()\n"
        "finally: print([name for name in sys.modules if name.startswith(prefixes)])"
    )
    arguments = (job, "--driver=none") if job == "server" else (job, "--source=x")
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=180, check=False
    )
    loaded = ran.stdout.splitlines()[-1]
    assert "cacheserver.cli" in loaded, ran.stderr
    assert not [name for name in ("app.cli", "app.running.bootstrap", "sqlalchemy", "fastapi") if f"'{name}'" in loaded]
    assert ("cacheserver.server.process" in loaded) == (job == "server")
