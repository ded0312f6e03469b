"""Credentials inside storage URIs: taken off the command line where that is possible, and out of every text."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote

HIDDEN: Final = "***"
# What `juicefs` 0.14 reads where a URI carries no key. A process's environment is its owner's to read, its command line
# is everybody's.
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
_WHOLE_WORDS_BELOW: Final = 4  # a shorter secret is only hidden where it stands alone


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Hides what it was told of in any text, and whatever looks like the user part of a URI."""

    secrets: tuple[str, ...] = ()

    def __call__(self, text: str) -> str:
        for secret in self.secrets:
            if len(secret) >= _WHOLE_WORDS_BELOW:
                text = text.replace(secret, HIDDEN)
            else:
                text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, text)
        return _USERINFO.sub(rf"://\1{HIDDEN}@", text)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A URI as it may stand on a command line, and the environment that carries its credentials instead."""

    uri: str
    environment: Mapping[str, str] = field(default_factory=dict)


def scrubber(uris: Iterable[str]) -> Scrubber:
    """Of these URIs: both keys, as written and as decoded and encoded, longest first."""
    found: set[str] = set()
    for uri in uris:
        user, at, _ = uri.partition("://")[2].lstrip("/").rpartition("@")
        if at:
            for part in (user, *user.split(":", 1)):
                found |= {part, unquote(part), quote(part, safe="")}
    return Scrubber(tuple(sorted(found - {""}, key=lambda secret: (-len(secret), secret))))


def endpoints(source: str, destination: str) -> tuple[Endpoint, Endpoint]:
    """The two ends of a sync; one whose variables the other needs with other values keeps its keys in the URI."""
    left = _endpoint(source)
    right = _endpoint(destination)
    clash = any(right.environment.get(name, value) != value for name, value in left.environment.items())
    return left, Endpoint(destination) if clash or _shares_storage(left, right) else right


def _shares_storage(left: Endpoint, right: Endpoint) -> bool:
    """Whether the one without keys would be given the keys of the other."""
    same = left.uri.partition("://")[0].lower() == right.uri.partition("://")[0].lower()
    return same and bool(right.environment) and not left.environment


def _endpoint(uri: str) -> Endpoint:
    match = _URI.fullmatch(uri)
    names = ENVIRONMENT.get(match["scheme"].lower()) if match else None
    if match is None or names is None:
        return Endpoint(uri)
    access, _, secret = match["user"].partition(":")
    if not access or not secret:
        return Endpoint(uri)
    keyless = f"{match['scheme']}://{match['slash']}{match['rest']}"
    return Endpoint(keyless, {names[0]: unquote(access), names[1]: unquote(secret)})
