"""URIs of data sources: the storages that can be named, and where credentials go in them."""

from typing import Final, NamedTuple
from urllib.parse import quote

from app.domain.cache.refusals import refusal
from app.domain.cache.values import StorageKeys
from app.domain.errors import Problems, shorten

STORAGES: Final = (
    "bos",
    "s3",
    "hdfs",
    "gs",
    "wasb",
    "oss",
    "cos",
    "ks3",
    "ufile",
    "qingstor",
    "jss",
    "qiniu",
    "b2",
    "space",
    "obs",
    "oos",
    "scw",
    "minio",
    "scs",
    "ibmcos",
    "wasabi",
    "mss",
    "nos",
    "eos",
    "speedy",
    "ceph",
    "swift",
    "webdav",
    "redis",
    "tikv",
    "file",
)
EXPECTED: Final = "[NAME://]BUCKET[.ENDPOINT][/PREFIX], as s3://bucket.s3.us-east-1.amazonaws.com/train"
_MARK: Final = "://"


class Wrong(NamedTuple):
    code: str
    detail: str
    accepted: str


def wrong_source(uri: str) -> Wrong | None:
    """What is wrong with the URI of a source that is to be synced. Nothing after its scheme is ever quoted."""
    if not uri:
        return Wrong("DataSourceEmpty", "data source cannot be empty", EXPECTED)
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
    """Keys in a manifest would be stored with it and shown to whoever may read it."""
    scheme, _, rest = uri.rpartition(_MARK)
    if scheme == "file":
        return None
    authority, _, path = rest.lstrip("/").partition("/")
    user, at, host = authority.rpartition("@")
    # A key with a slash ends the authority early, and leaves a colon and an @ behind it.
    is_key_in_path = ":" in path.rpartition("@")[0]
    if is_key_in_path or (at and (":" in user or scheme != "hdfs")):
        detail = "a source may not carry credentials: they belong into the Secret that secretRef names"
        return Wrong("CredentialsInSource", detail, EXPECTED)
    # What is no port is what a key with a slash has left of itself.
    _, colon, port = host.rpartition(":")
    if colon and not port.isdecimal() and not host.endswith("]"):
        return Wrong("DataSourceFormat", "the format of data source uri is not support", EXPECTED)
    return None


def check_source(uri: str, pointer: str, problems: Problems) -> None:
    if wrong := wrong_source(uri):
        problems.add(pointer, *wrong)


def require_source(uri: str, pointer: str) -> None:
    if wrong := wrong_source(uri):
        raise refusal(wrong.code, wrong.detail, pointer, wrong.accepted)


def with_keys(uri: str, credentials: StorageKeys | None) -> str:
    """The URI as a runtime server is given it.

    Keys are percent-encoded, since many have a slash or a plus sign; the file system takes none.
    """
    scheme, mark, rest = uri.partition(_MARK)
    if credentials is None or scheme == "file":
        return uri
    user = f"{quote(credentials.access_key, safe='')}:{quote(credentials.secret_key, safe='')}@"
    slash = "/" if rest.startswith("/") else ""
    return f"{scheme}{mark}{slash}{user}{rest.removeprefix(slash)}"
