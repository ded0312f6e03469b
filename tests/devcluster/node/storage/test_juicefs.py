"""What a JuiceFS volume becomes on a command line: options in order, secrets nowhere but in the environment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from devcluster.node.settings import NodeSettings
from devcluster.node.storage.juicefs import BINARY_VARIABLE, VolumeError, find_binary, read_volume, without_password

SECRET = {"name": "disk", "metaurl": "redis://:pa%40ss@db:6379/1", "storage": "s3", "bucket": "https://b.s3"}
KEYS = {"access-key": "AK", "secret-key": "SK"}
BINARY = Path("/opt/juicefs")


def spec(options: str = "", **more: Any) -> Mapping[str, Any]:
    attributes = {"mountOptions": options} if options else {}
    return {"csi": {"driver": "csi.juicefs.com", "volumeAttributes": attributes}, **more}


@pytest.mark.parametrize(
    ("url", "expected", "environment"),
    [
        ("sqlite3:///data/meta.db", "sqlite3:///data/meta.db", {}),
        ("sqlite3:///a:b@c/meta.db", "sqlite3:///a:b@c/meta.db", {}),
        ("redis://db:6379/1", "redis://db:6379/1", {}),
        ("redis://:pw@db:6379/1", "redis://db:6379/1", {"REDIS_PASSWORD": "pw"}),
        ("rediss://me:p%40w@db/1", "rediss://me@db/1", {"REDIS_PASSWORD": "p@w"}),
        ("mysql://me:p@w@(db:3306)/juice", "mysql://me@(db:3306)/juice", {"META_PASSWORD": "p@w"}),
        ("postgres://me:pw@db:5432/juice", "postgres://me@db:5432/juice", {"META_PASSWORD": "pw"}),
        ("postgres://me@db:5432/juice", "postgres://me@db:5432/juice", {}),
    ],
)
def test_a_metadata_password_goes_to_the_environment(url: str, expected: str, environment: dict[str, str]) -> None:
    assert without_password(url) == (expected, environment)


def test_an_engine_that_takes_passwords_as_arguments_only_is_refused() -> None:
    with pytest.raises(VolumeError, match="password of etcd") as refused:
        without_password("etcd://me:hidden@db/juice")
    assert "hidden" not in str(refused.value)


def test_commands_hold_no_secret() -> None:
    volume = read_volume(spec("cache-dir=/a:/b,cache-size=10,writeback", mountOptions=["prefetch=3"]), SECRET | KEYS)
    assert volume.format_command(BINARY) == (
        "/opt/juicefs", "format", "--no-update", "--storage=s3", "--bucket=https://b.s3", "redis://db:6379/1", "disk",
    )  # fmt: skip
    assert volume.mount_command(BINARY, Path("/m")) == (
        "/opt/juicefs", "mount", "--no-usage-report", "--no-syslog", "--metrics=127.0.0.1:0", "--prefetch=3",
        "--cache-dir=/a:/b", "--cache-size=10", "--writeback", "redis://db:6379/1", "/m",
    )  # fmt: skip
    assert volume.secrets == {"REDIS_PASSWORD": "pa@ss", "ACCESS_KEY": "AK", "SECRET_KEY": "SK"}
    assert volume.without_secrets("login pa@ss failed for SK") == "login *** failed for ***"


def test_caches_are_below_the_nodes_own_root(tmp_path: Path) -> None:
    node = NodeSettings(data_dir=tmp_path, host_root=tmp_path / "disk")
    volume = read_volume(spec("cache-dir=/a:/b/c,cache-size=10"), SECRET, node.host_path)
    assert volume.options == (f"--cache-dir={tmp_path}/disk/a:{tmp_path}/disk/b/c", "--cache-size=10")


def test_metrics_of_ones_own_are_kept() -> None:
    command = read_volume(spec("metrics=0.0.0.0:9000"), SECRET).mount_command(BINARY, Path("/m"))
    assert [word for word in command if "metrics" in word] == ["--metrics=0.0.0.0:9000"]


@pytest.mark.parametrize(
    ("options", "lacking", "message"),
    [
        ("", "name", "lacks name"),
        ("", "metaurl", "lacks metaurl"),
        ("--o=allow_root", "", "mountOptions: '--o=allow_root': expected name or name=value"),
        ("Cache=1,ok", "", "mountOptions: 'Cache=1': expected"),
    ],
)
def test_what_is_no_volume_is_refused(options: str, lacking: str, message: str) -> None:
    with pytest.raises(VolumeError, match=message):
        read_volume(spec(options), {key: value for key, value in SECRET.items() if key != lacking})


def test_the_command_is_the_one_that_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "juicefs"
    command.write_text("#!/bin/sh\n")
    assert find_binary(command) is None
    command.chmod(0o755)
    assert find_binary(command) == command
    monkeypatch.setenv(BINARY_VARIABLE, str(command))
    assert find_binary(None) == command
    monkeypatch.delenv(BINARY_VARIABLE)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_binary(None) == command
