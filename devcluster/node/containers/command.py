"""Builds the local process that stands for a container from the spec of the container."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from devcluster.node.containers.image_commands import command_directory, search_path
from devcluster.node.containers.images import Image, argv_for, find_image
from devcluster.node.context import PodContext
from devcluster.node.environment import build_environment, expand
from devcluster.node.kube.configuration import container_references
from devcluster.node.network.hosts import hostname_of
from devcluster.node.processes.leftovers import MARK
from devcluster.node.processes.process import DEFAULT_PATH, Command, Mount
from devcluster.node.storage.volumes import has_payload

TERMINATION_LOG = "/dev/termination-log"


async def build_command(context: PodContext, container: Mapping[str, Any], restart: int) -> Command:
    """Resolve command, environment, mounts and working directory of a container.

    Raises:
        NoImageError: the images file does not have the image, or there is no command.
        ConfigError: a source of the environment does not exist.
        StatusError: the API server refused a request or did not answer.
    """
    image = find_image(context.node.images(), container["image"])
    # A kubelet pulls the image first, so a missing image is reported before missing configuration.
    command, args = container.get("command") or (), container.get("args") or ()
    argv = argv_for(image, container["image"], command, args, file=context.node.settings.images_file)
    objects = await context.node.objects.fetch(
        context.namespace, container_references(container), max_age=context.freshness()
    )
    folder = context.folder / "containers" / container["name"] / str(restart)
    scratch = folder / "work"
    scratch.mkdir(parents=True, exist_ok=True)
    own = build_environment(container, context.sources(objects))
    identity = f"{folder.resolve()}/"
    # The mark comes last, so that no container can hide its processes from `leftovers`.
    env = {**_base_environment(context, image, scratch), **own, MARK: identity}
    env["PATH"] = search_path(os.environ.get("PATH", DEFAULT_PATH), image, own.get("PATH"), _commands(context, image))
    argv = tuple(expand(word, {**_service_environment(context), **own}) for word in argv)
    mounts = _mounts(context, container, folder)
    if not context.node.namespaces:
        argv, env = _without_namespaces(argv, env, mounts)
    return Command(
        argv=argv,
        env=env,
        cwd=_working_directory(context, container, mounts, scratch),
        folder=folder,
        hostname=hostname_of(context.pod),
        mounts=mounts,
        namespaces=context.node.namespaces,
        identity=identity,
        hidden=context.node.csi.folder,
    )


def _service_environment(context: PodContext) -> dict[str, str]:
    server = urlsplit(context.node.client.server)
    port = server.port or (443 if server.scheme == "https" else 80)
    return {"KUBERNETES_SERVICE_HOST": server.hostname or "", "KUBERNETES_SERVICE_PORT": str(port)}


def _base_environment(context: PodContext, image: Image | None, scratch: Path) -> dict[str, str]:
    """Return the variables that an image provides, except PATH. The node passes on only its locale."""
    env = {"HOME": str(scratch)}
    env |= {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    env |= {"HOSTNAME": hostname_of(context.pod), **_service_environment(context)}
    # Python buffers output to a pipe in blocks, which would delay the log of the container.
    env |= {"PYTHONUNBUFFERED": "1", "JOBGATE_DEV_HOSTS_FILE": str(context.hosts_file)}
    return env | dict(image.env if image else {})


def _commands(context: PodContext, image: Image | None) -> Path | None:
    return command_directory(context.node.settings.data_dir.resolve() / "images", image)


def _mounts(context: PodContext, container: Mapping[str, Any], folder: Path) -> tuple[Mount, ...]:
    """Return the mounts, with shorter paths first, so that a mount inside another volume follows that volume."""
    found = [_volume_mount(context, entry) for entry in container.get("volumeMounts") or []]
    message = folder / "termination-log"
    # A bind mount needs an existing file.
    message.write_bytes(b"")
    found.append(Mount(source=message, target=termination_path(container), read_only=False))
    if context.node.namespaces and not any(m.target == "/etc/hosts" for m in found):
        found.append(Mount(source=context.hosts_file, target="/etc/hosts", read_only=False))
        found.append(Mount(source=context.folder / "hostname", target="/etc/hostname", read_only=False))
    return tuple(sorted(found, key=lambda mount: mount.target.count("/")))


def _volume_mount(context: PodContext, entry: Mapping[str, Any]) -> Mount:
    source = context.volumes[entry["name"]]
    volume = context.volume(entry["name"])
    claim = volume.get("persistentVolumeClaim") or {}
    read_only = bool(entry.get("readOnly") or claim.get("readOnly")) or has_payload(volume)
    if inside := entry.get("subPath"):
        source = source / inside
        if not source.exists() and not read_only:
            source.mkdir(parents=True)
        source = source.resolve()
    return Mount(source=source, target=entry["mountPath"].rstrip("/") or "/", read_only=read_only)


def termination_path(container: Mapping[str, Any]) -> str:
    return container.get("terminationMessagePath") or TERMINATION_LOG


def _without_namespaces(
    argv: Sequence[str], env: Mapping[str, str], mounts: Sequence[Mount]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Replace each mount path in command, args and environment with the directory of its volume."""
    paths = sorted(((m.target, str(m.source)) for m in mounts), key=lambda pair: -len(pair[0]))
    # These have paths of this machine, which may contain a mount path by chance.
    kept = {"PATH", "HOME", MARK, "JOBGATE_DEV_HOSTS_FILE"}
    changed = {name: value if name in kept else substitute(value, paths) for name, value in env.items()}
    changed |= {f"JOBGATE_DEV_MOUNT_{i}": f"{m.target}={m.source}" for i, m in enumerate(mounts)}
    return tuple(substitute(word, paths) for word in argv), changed


def substitute(text: str, paths: Sequence[tuple[str, str]]) -> str:
    """Replace complete paths only, the longest first: /data is replaced, and /database is not."""
    out, position = [], 0
    while position < len(text):
        for target, source in paths:
            end = position + len(target)
            if text.startswith(target, position) and _is_path_end(text, end) and _is_path_start(text, position):
                out.append(source)
                position = end
                break
        else:
            out.append(text[position])
            position += 1
    return "".join(out)


def _is_path_end(text: str, position: int) -> bool:
    return position == len(text) or not (text[position].isalnum() or text[position] in "-_.")


def _is_path_start(text: str, position: int) -> bool:
    return position == 0 or not (text[position - 1].isalnum() or text[position - 1] in "-_./~")


def _working_directory(
    context: PodContext, container: Mapping[str, Any], mounts: Sequence[Mount], scratch: Path
) -> str:
    wanted = container.get("workingDir")
    if not wanted:
        return str(scratch)
    if context.node.namespaces:
        return str(wanted)
    real = substitute(wanted, sorted(((m.target, str(m.source)) for m in mounts), key=lambda pair: -len(pair[0])))
    return real if Path(real).is_dir() else str(scratch)
