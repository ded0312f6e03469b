"""A directory of commands for each mapped image, for the PATH of its containers.

A command line names its first word only. What a shell script or a program starts is looked up on PATH, where this
machine need not have what the image would have: `python`, for instance.
"""

import hashlib
import shlex
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp

from devcluster.node.containers.images import Image, stood_in


def command_scripts(image: Image) -> dict[str, str]:
    """Return a shell script for each word of the image that a PATH can hold.

    A script, not a link: Python finds its virtual environment next to the path that it was started by.
    """
    return {
        word: f'#!/bin/sh\nexec {shlex.join(stood_in(image, [word]))} "$@"\n'
        for word in image.words
        if word and "/" not in word
    }


def command_directory(root: Path, image: Image | None) -> Path | None:
    """Write the image's commands below `root` unless they are there, and return their directory.

    The directory is named by its content, so that a changed images file changes no running container.
    """
    scripts = command_scripts(image) if image else {}
    if not scripts:
        return None
    digest = hashlib.sha256(repr(sorted(scripts.items())).encode()).hexdigest()[:16]
    directory = root / digest
    if not directory.exists():
        _write(directory, scripts)
    return directory


def _write(directory: Path, scripts: Mapping[str, str]) -> None:
    """Make the directory appear whole: a killed node must not leave half of it."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(mkdtemp(prefix=".new-", dir=directory.parent))
    stage.chmod(0o755)
    for word, script in scripts.items():
        file = stage / word
        file.write_text(script)
        file.chmod(0o755)
    stage.rename(directory)


def search_path(node: str, image: Image | None, own: str | None, commands: Path | None) -> str:
    """Return a container's PATH.

    The image's commands come before the node's. Where the container sets PATH itself, its directories come first:
    they hold what it mounts or builds.
    """
    inherited = (image.env.get("PATH") if image else None) or node
    parts = (commands and str(commands), inherited) if own is None else (own, commands and str(commands))
    return ":".join(part for part in parts if part)
