"""Credentials in storage URIs. They are kept off the command line if the storage allows it, and out of messages."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote

HIDDEN: Final = "***"
# The variables that `juicefs` 0.14 reads if a URI has no keys. Only its owner can read the environment of a process,
# but every user can read its command line.
ENVIRONMENT: Final[Mapping[str, tuple[str, str]]] = {
    "bos": ("BDCLOUD_ACCESS_KEY", "BDCLOUD_SECRET_KEY"),
    "cos": ("COS_SECRETID", "COS_SECRETKEY"),
    "eos": ("EOS_ACCESS_KEY", "EOS_SECRET_KEY"),
    "minio": ("MINIO_ACCESS_KEY", "MINIO_SECRET_KEY"),
    "obs": ("HWCLOUD_ACCESS_KEY", "HWCLOUD_SECRET_KEY"),
    "oss": ("ALICLOUD_ACCESS_KEY_ID", "ALICLOUD_ACCESS_KEY_SECRET"),
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    "scw": ("SCW_ACCESS_KEY", "SCW_SECRET_KEY"),
}
_URI: Final = re.compile(r"(?P<scheme>[A-Za-z0-9+.-]+)://(?P<slash>/?)(?P<user>[^/@]*)@(?P<rest>.*)", re.DOTALL)
_USERINFO: Final = re.compile(r"://(/?)[^\s@'\"<>]+@")
_WHOLE_WORDS_BELOW: Final = 4  # shorter secrets are hidden as whole words only, since they occur by chance in others


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Replaces known secrets in a text, and everything that has the form of the user part of a URI."""

    secrets: tuple[str, ...] = ()

    def __call__(self, text: str) -> str:
        for secret in self.secrets:
            if len(secret) >= _WHOLE_WORDS_BELOW:
                text = text.replace(secret, HIDDEN)
            else:
                text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, text)
        return _USERINFO.sub(rf"://\1{HIDDEN}@", text)


@dataclass(frozen=True, slots=True)
class SyncEnd:
    """The URI of one end of a sync as on the command line, and the environment with its credentials."""

    uri: str
    environment: Mapping[str, str] = field(default_factory=dict)


def scrubber(uris: Iterable[str]) -> Scrubber:
    """Return the scrubber for the keys in these URIs: as written, decoded and encoded.

    The longest comes first, since one secret may contain another.
    """
    found: set[str] = set()
    for uri in uris:
        # The last @ ends the user part, because a key may contain an @.
        user, at, _ = uri.partition("://")[2].lstrip("/").rpartition("@")
        if at:
            for part in (user, *user.split(":", 1)):
                found |= {part, unquote(part), quote(part, safe="")}
    return Scrubber(tuple(sorted(found - {""}, key=lambda secret: (-len(secret), secret))))


def sync_ends(source: str, destination: str) -> tuple[SyncEnd, SyncEnd]:
    """Return both ends of a sync.

    There is one environment for both. If they need different values of a variable, the destination keeps its keys in
    the URI.
    """
    left = _sync_end(source)
    right = _sync_end(destination)
    clash = any(right.environment.get(name, value) != value for name, value in left.environment.items())
    return left, SyncEnd(destination) if clash or _shares_storage(left, right) else right


def _shares_storage(left: SyncEnd, right: SyncEnd) -> bool:
    """Return whether a source without keys would get the keys of the destination from the environment."""
    same = left.uri.partition("://")[0].lower() == right.uri.partition("://")[0].lower()
    return same and bool(right.environment) and not left.environment


def _sync_end(uri: str) -> SyncEnd:
    match = _URI.fullmatch(uri)
    names = ENVIRONMENT.get(match["scheme"].lower()) if match else None
    if match is None or names is None:
        return SyncEnd(uri)
    access, _, secret = match["user"].partition(":")
    if not access or not secret:
        return SyncEnd(uri)
    keyless = f"{match['scheme']}://{match['slash']}{match['rest']}"
    return SyncEnd(keyless, {names[0]: unquote(access), names[1]: unquote(secret)})
