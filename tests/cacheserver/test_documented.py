"""The flags for juicefs are those that it documents, no shell interprets them, and the page lists every default."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from app.domain.kinds.samples.specs.mount_options import JuiceFSMountOptions
from cacheserver import cli
from cacheserver.config import RuntimeConfig, WarmupTimes
from cacheserver.engine.binary import juicefs_path
from cacheserver.options import NO_FLAGS, Options, SyncRequest, WarmupRequest, flags
from tests.support.cache.cache_server import ROOT
from tests.support.cache.juicefs import needs_juicefs

PAGE = (ROOT / "docs" / "cache-runtime.md").read_text()
# Of the mount options those that the CSI driver's newer juicefs knows.
LATER = {"open-cache", "sub-dir"}
EVERY_FLAG = SyncRequest(
    start="a",
    end="z",
    threads=2,
    http_port=6071,
    update=True,
    force_update=True,
    perms=True,
    dirs=True,
    dry=True,
    delete_src=True,
    delete_dst=True,
    exclude="x$",
    include="^f",
    bwlimit=900,
    no_https=True,
)


def juicefs(*arguments: str) -> str:
    command = [str(juicefs_path()), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def documented(command: str) -> dict[str, str]:
    """Return every long option with its line."""
    lines = juicefs(command, "--help").splitlines()
    return {name: line for line in lines for name in re.findall(r"--([\w-]+)", line)}


@needs_juicefs
def test_every_flag_of_a_sync_is_documented() -> None:
    names = {field.encode_name for field in msgspec.structs.fields(SyncRequest)} - NO_FLAGS
    assert names <= documented("sync").keys()
    assert {"file", "threads"} <= documented("warmup").keys()


@needs_juicefs
def test_every_mount_option_but_two_is_documented() -> None:
    names = {field.alias for field in JuiceFSMountOptions.model_fields.values()}
    assert names - documented("mount").keys() == LATER


@needs_juicefs
@pytest.mark.parametrize(
    ("command", "flag", "default"),
    [
        ("sync", "threads", "10"),
        ("sync", "http-port", "6070"),
        ("sync", "bwlimit", "0"),
        ("warmup", "threads", "50"),
        ("mount", "cache-size", "1024"),
        ("mount", "free-space-ratio", "0.1"),
        ("mount", "prefetch", "1"),
    ],
)
def test_what_is_not_given_is_juicefs_own_default(command: str, flag: str, default: str) -> None:
    assert f"(default: {default})" in documented(command)[flag]


@needs_juicefs
def test_juicefs_takes_all_flags_together(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "file").write_text("x")
    given = flags(EVERY_FLAG)
    assert len(given) == len(msgspec.structs.fields(SyncRequest)) - len(NO_FLAGS | {"manager", "worker"})
    assert "Found: 1," in juicefs("sync", *given, f"file://{tmp_path}/from/", f"file://{tmp_path}/to/")


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "cacheserver", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_no_shell_reads_a_path(tmp_path: Path) -> None:
    odd = f"$(touch {tmp_path.name}-pwned); `id` & *"
    (tmp_path / "data").mkdir()
    for name in (odd, "kept"):
        (tmp_path / "data" / name).write_text("x")
    ran = run("rmr", f"--dataDir={tmp_path}/data", f"--paths={tmp_path}/data/{odd}")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["kept"]
    assert not list(ROOT.glob("*-pwned"))


@needs_juicefs
def test_no_shell_reads_a_flag(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "kept").write_text("x")
    source, target = f"--source=file://{tmp_path}/from/", f"--destination=file://{tmp_path}/data/"
    (tmp_path / "data").mkdir()
    allowed = f"--allowed-directories={tmp_path}"
    ran = run("sync", f"--dataDir={tmp_path}/data", source, target, allowed, f"--exclude=$(touch {tmp_path}/pwned)")
    assert (ran.returncode, ran.stdout) == (0, "1 files found\n"), ran.stderr
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(("arguments", "strategy"), [([], "random"), (["--strategyName=sequence"], "sequence")])
def test_the_default_strategy_of_the_warm_up_command_is_random(
    arguments: list[str], strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Options] = []

    async def note(engine: Any, options: Options, job: str, progress: Any) -> str:
        del engine, job, progress
        asked.append(options)
        return ""

    monkeypatch.setattr(cli, "perform", note)
    ran = CliRunner().invoke(cli.runtime, ["warmup", "--dataDir=/mnt/S", *arguments])
    assert ran.exit_code == 0, ran.output
    assert asked == [WarmupRequest(strategyName=strategy)]  # type: ignore[arg-type]


def test_the_page_has_every_default() -> None:
    server = typer.main.get_command(cli.runtime).commands["server"]  # type: ignore[attr-defined]
    defaults = {flag: parameter.default for parameter in server.params for flag in parameter.opts}
    lines = PAGE.partition("| flag | default |")[2].partition("\n\n")[0].splitlines()[2:]
    listed: dict[str, str] = {}
    for line in lines:
        names, values = (cell.strip() for cell in line.split("|")[1:3])
        listed |= dict(zip(re.findall(r"`(--[\w-]+)`", names), values.split(", ") if values else [], strict=False))
    assert listed.pop("--index") == "from `HOSTNAME`"
    assert listed == {flag: str(defaults[flag]) for flag in listed}
    assert {"--driver", "--serverPort", "--serverDir", "--interval", "--timeout", "--warmup-times"} <= listed.keys()


def test_the_waits_of_a_warm_up_are_upstreams() -> None:
    times = RuntimeConfig().warmup
    assert (times.workers, times.lists, times.directory) == (120, 600, 120)
    assert times == WarmupTimes()
