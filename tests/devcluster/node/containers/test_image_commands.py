"""The directory of commands that stands for what an image has on its PATH."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.node.containers.image_commands import command_directory, command_scripts, search_path
from devcluster.node.containers.images import BUILT_IN, Image, find_image

TOOL = Image(match="tool:*", words={"py": ("{python}",), "say": ("sh", "-c", 'echo "$0 $*"'), "/bin/tool": ("true",)})


def test_each_word_without_a_slash_becomes_a_command() -> None:
    assert command_scripts(TOOL).keys() == {"py", "say"}
    python = find_image(BUILT_IN, "python:3.12-slim")
    assert python is not None
    assert {"python", "python3"} <= command_scripts(python).keys()


def test_commands_run_what_stands_in_for_them(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        directory = command_directory(tmp_path / "with space", TOOL)
    finally:
        os.umask(old)
    assert directory is not None
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o755 for file in (directory, *directory.iterdir()))

    def output(*command: str) -> str:
        return subprocess.run(
            command, env={"PATH": f"{directory}:/bin"}, capture_output=True, text=True, check=True
        ).stdout

    # The interpreter keeps its virtual environment, which a link to it would lose.
    assert output("sh", "-c", "exec py -c 'import sys; print(sys.prefix)'").strip() == sys.prefix
    assert output(str(directory / "say"), "a b", "c") == "a b c\n"


def test_the_directory_is_written_once_and_follows_the_table(tmp_path: Path) -> None:
    first = command_directory(tmp_path, TOOL)
    assert first is not None
    written = (first / "py").stat().st_mtime_ns
    assert command_directory(tmp_path, TOOL) == first
    assert (first / "py").stat().st_mtime_ns == written
    changed = command_directory(tmp_path, Image(match="tool:*", words={"py": ("true",)}))
    assert changed is not None
    assert sorted(tmp_path.iterdir()) == sorted({first, changed})
    assert first != changed
    assert command_directory(tmp_path, Image(match="plain:*")) is None
    assert command_directory(tmp_path, None) is None


@pytest.mark.parametrize(
    ("image", "own", "commands", "expected"),
    [
        (None, None, None, "/node"),
        (None, "/own", None, "/own"),
        (TOOL, None, Path("/cmd"), "/cmd:/node"),
        (TOOL, "/own", Path("/cmd"), "/own:/cmd"),
        (Image(match="*", env={"PATH": "/image"}), None, Path("/cmd"), "/cmd:/image"),
        (Image(match="*", env={"PATH": "/image"}), "/own", None, "/own"),
        (TOOL, "", Path("/cmd"), "/cmd"),
    ],
)
def test_search_path(image: Image | None, own: str | None, commands: Path | None, expected: str) -> None:
    assert search_path("/node", image, own, commands) == expected
