"""URIs of data sources: the supported storages, the checks, and the place of credentials."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from app.domain.cache.source_limits import (
    LOCAL,
    STORAGES,
    SourceLimits,
    first_wrong_host,
    hosts_of,
    wrong_directory,
)
from app.domain.cache.values import StorageKeys
from app.domain.errors import Problems, invalid_manifest, shorten

EXPECTED: Final = "[NAME://]BUCKET[.ENDPOINT][/PREFIX], as s3://bucket.s3.us-east-1.amazonaws.com/train"
_MARK: Final = "://"


class Wrong(NamedTuple):
    """What is wrong with a URI."""

    code: str
    detail: str
    accepted: str


def wrong_source(uri: str) -> Wrong | None:
    """Return what is wrong with the URI of a source, or None. Messages quote the scheme only, since keys may follow."""
    if not uri:
        return Wrong("DataSourceEmpty", "data source cannot be empty", EXPECTED)
    # A second :// would make two URIs, of which the checks below see only one.
    if uri.count(_MARK) != 1 or not uri.isprintable() or " " in uri:
        return Wrong("DataSourceFormat", "the format of data source uri is not support", EXPECTED)
    scheme, _, rest = uri.partition(_MARK)
    if scheme not in STORAGES:
        detail = f"the object storage {shorten(scheme)} of is not support"
        return Wrong("StorageNotSupported", detail, "one of " + ", ".join(STORAGES))
    if not rest.strip("/") and scheme != "file":
        return Wrong("DataSourceFormat", "the format of data source uri is not support", EXPECTED)
    return wrong_authority(uri)


def wrong_authority(uri: str) -> Wrong | None:
    """Return what is wrong with host and user of a URI, or None.

    Keys are refused: a manifest is stored, and every caller that can read it would see them.
    """
    scheme, _, rest = uri.rpartition(_MARK)
    if scheme == "file":
        return None
    authority, _, path = rest.lstrip("/").partition("/")
    user, at, host = authority.rpartition("@")
    # A key that contains a slash ends the authority early; the colon and the @ are then in the path.
    is_key_in_path = ":" in path.rpartition("@")[0]
    if is_key_in_path or (at and (":" in user or scheme != "hdfs")):
        detail = "a source may not carry credentials: they belong into the Secret that secretRef names"
        return Wrong("CredentialsInSource", detail, EXPECTED)
    # Text after the colon that is not a port is the beginning of a key that contains a slash.
    _, colon, port = host.rpartition(":")
    if colon and not (port.isascii() and port.isdecimal()) and not host.endswith("]"):
        return Wrong("DataSourceFormat", "the format of data source uri is not support", EXPECTED)
    return None


def wrong_place(uri: str, limits: SourceLimits) -> Wrong | None:
    """Return why the limits forbid a valid URI, or None."""
    scheme = uri.partition(_MARK)[0]
    if scheme == LOCAL:
        if why := wrong_directory(uri, limits):
            accepted = ", ".join(limits.directories) or "the storages " + ", ".join(sorted(limits.schemes))
            return Wrong("SourceNotAllowed", f"the source {why}", accepted)
        return None
    if scheme not in limits.schemes:
        detail = f"sources in {scheme} are not allowed here"
        return Wrong("SourceNotAllowed", detail, "one of " + ", ".join(sorted(limits.schemes)))
    return wrong_hosts_of_source(hosts_of(uri), limits)


def wrong_hosts_of_source(hosts: Sequence[str], limits: SourceLimits) -> Wrong | None:
    """Return why the limits forbid one of these hosts, or None."""
    if wrong := first_wrong_host(hosts, limits):
        return Wrong("SourceNotAllowed", f"{shorten(wrong[0])} {wrong[1]}", limits.accepted_hosts)
    return None


def check_source(uri: str, pointer: str, problems: Problems, limits: SourceLimits | None) -> None:
    """Report what is wrong with the URI of a source. Without limits, it may name any place."""
    if wrong := wrong_source(uri) or (wrong_place(uri, limits) if limits else None):
        problems.add(pointer, *wrong)


def require_source(uri: str, pointer: str, limits: SourceLimits) -> None:
    """Raise InvalidManifest unless the URI of a source is valid and allowed."""
    if wrong := wrong_source(uri) or wrong_place(uri, limits):
        raise invalid_manifest(wrong.code, wrong.detail, pointer, wrong.accepted)


def with_keys(uri: str, credentials: StorageKeys | None) -> str:
    """Return the URI with the keys, as it is posted to a runtime server.

    Keys are percent-encoded, since many contain a slash or a plus sign. A file:// URI gets none.
    """
    scheme, mark, rest = uri.partition(_MARK)
    if credentials is None or scheme == "file":
        return uri
    user = f"{quote(credentials.access_key, safe='')}:{quote(credentials.secret_key, safe='')}@"
    # A URI may begin with three slashes. The keys belong behind the third.
    slash = "/" if rest.startswith("/") else ""
    return f"{scheme}{mark}{slash}{user}{rest.removeprefix(slash)}"
