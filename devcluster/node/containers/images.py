"""The images file, which maps image patterns to local commands, because the node has no images.

images:
  - match: "python:*"
    words: {python: "{python}", tool: [sh, -c, "…"]}    # replacements of the first word of a command
    cmd: [python3]                                      # for a container without a command
  - match: "registry.example/train:*"
    entrypoint: [python3, -m, train]
    env: {TRAIN_HOME: /srv/train}
"""

import fnmatch
import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FIELDS = frozenset({"match", "words", "entrypoint", "cmd", "env"})
HUB = ("docker.io/library/", "docker.io/", "index.docker.io/library/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One entry of the images file."""

    match: str
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


# The start command of PaddlePaddle: trainers run the command in ENTRY, and all other roles wait until they are stopped.
PADDLE = 'case "$0" in *trainer) exec sh -c "$ENTRY";; *) exec sleep 2147483647;; esac'
PYTHON_WORDS = {"python": ("{python}",), "python3": ("{python}",), "paddle_k8s": ("sh", "-c", PADDLE)}
# A runtime server of a sample set. Several share this machine, so each gets an address and a directory of its own.
RUNTIME = (
    'shift; if [ "$1" = server ]; then shift; '
    'set -- server --serverHost="$HOSTNAME" --serverDir="$HOME/runtime" "$@"; fi; '
    'exec "$0" -m cacheserver "$@"'
)
BUILT_IN = (
    Image(match="jobgate:*", words={"jobgate": ("sh", "-c", RUNTIME, "{python}")}),
    Image(match="python:*", words=PYTHON_WORDS, cmd=("python3",)),
    Image(match="paddlepaddle/*", words=PYTHON_WORDS),
    Image(match="m3ngyang/etcd:*", words={"etcd": ("sh", "-c", "exec sleep 2147483647")}),
    *(Image(match=f"{name}:*", cmd=("sh",)) for name in ("busybox", "alpine", "debian", "ubuntu", "bash")),
)


class NoImageError(Exception):
    """The images file does not have the image, or neither it nor the container has a command."""


def load_images(path: Path | None) -> tuple[Image, ...]:
    """Return the entries of a YAML or JSON file if it exists, followed by the built-in ones.

    Raises:
        ValueError: the file is invalid. The message names the entry and the field.
    """
    if path is None or not path.exists():
        return BUILT_IN
    content = yaml.safe_load(path.read_text())
    entries = content.get("images") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise ValueError(f"{path}: expected a list under 'images'")  # noqa: TRY004
    # The first match counts, so the file can replace built-in entries.
    return (*(_image(entry, f"{path}: images[{i}]") for i, entry in enumerate(entries)), *BUILT_IN)


def _image(entry: Any, where: str) -> Image:
    if not isinstance(entry, dict) or not isinstance(entry.get("match"), str):
        raise ValueError(f"{where}: expected an object with the string 'match'")  # noqa: TRY004
    if unknown := entry.keys() - FIELDS:
        raise ValueError(f"{where}: unknown field {min(unknown)!r}; known are {', '.join(sorted(FIELDS))}")
    lists = {name: tuple(map(str, entry.get(name) or ())) for name in ("entrypoint", "cmd")}
    words = {str(k): _words(v) for k, v in (entry.get("words") or {}).items()}
    env = {str(k): str(v) for k, v in (entry.get("env") or {}).items()}
    return Image(match=entry["match"], entrypoint=lists["entrypoint"], cmd=lists["cmd"], words=words, env=env)


def _words(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) and value else (str(value),)


def find_image(images: Sequence[Image], name: str) -> Image | None:
    full = _normal(name)
    return next((i for i in images if fnmatch.fnmatchcase(full, i.match) or fnmatch.fnmatchcase(name, i.match)), None)


def _normal(name: str) -> str:
    for prefix in HUB:
        # The registry and the tag that a name without them stands for.
        name = name.removeprefix(prefix)
    last = name.rpartition("/")[2]
    return name if ":" in last or "@" in last else f"{name}:latest"


def image_id(name: str) -> str:
    # The node has no image with a digest, so any stable value serves.
    return f"{_normal(name)}@sha256:{hashlib.sha256(_normal(name).encode()).hexdigest()}"


def argv_for(
    image: Image | None, name: str, command: Sequence[str], args: Sequence[str], *, file: Path | None = None
) -> tuple[str, ...]:
    """Return the command line. `command` replaces the entrypoint, and `args` replace cmd, as with real images.

    An image without an entry is refused even if the container has a command: on a real cluster, a misspelt image is
    not found, and a command that needs its programs would give another result with those of this machine.

    Raises:
        NoImageError: there is no entry, or the command line is empty. The message names `file`, the images file.
    """
    where = f"images file {file}" if file else "images file"
    if image is None:
        raise NoImageError(
            f"the embedded node has no images: {name!r} matches no entry of its {where}. To run the command of the"
            f" container with the programs of this machine, add the entry {{match: {name!r}}} below images"
        )
    argv = [*command, *args] if command else [*image.entrypoint, *(args or image.cmd)]
    if not argv:
        raise NoImageError(
            f"the embedded node has no images: {name!r} matches the entry {image.match!r}, which has no entrypoint and"
            f" no cmd, and the container has no command. Set command, or add an entry with entrypoint or cmd to its"
            f" {where}"
        )
    return replace_first_word(image, argv)


def replace_first_word(image: Image | None, argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command line, with the replacement of its first word if the image has one."""
    found = image.words.get(argv[0]) if image and argv else None
    return tuple(argv) if found is None else (*(w.replace("{python}", sys.executable) for w in found), *argv[1:])
