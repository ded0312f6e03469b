"""A directory of commands for each mapped image, for the PATH of its containers.

The words of an image replace only the first word of a command line. Shell scripts and programs look up commands on the
PATH, and this machine may lack commands that the image has, such as `python`.
"""

import hashlib
import shlex
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp

from devcluster.node.containers.images import Image, replace_first_word


def command_scripts(image: Image) -> dict[str, str]:
    """Return a shell script for each word of the image that is a file name.

    A link would not do: Python finds its virtual environment by the path that started it.
    """
    return {
        word: f'#!/bin/sh\nexec {shlex.join(replace_first_word(image, [word]))} "$@"\n'
        for word in image.words
        if word and "/" not in word
    }


def command_directory(root: Path, image: Image | None) -> Path | None:
    """Write the commands of the image below `root` unless they exist, and return their directory.

    The name of the directory is a hash of its content, so a change of the images file affects no running container.
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
    """Create the directory atomically, so that a killed node leaves no incomplete one."""
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

    The commands of the image precede those of the node. If the container sets PATH, its directories come first: they
    contain what the container mounts or builds.
    """
    inherited = (image.env.get("PATH") if image else None) or node
    parts = (commands and str(commands), inherited) if own is None else (own, commands and str(commands))
    return ":".join(part for part in parts if part)
