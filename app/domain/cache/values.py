"""The facts about a SampleSet that its spec does not hold: its identity, the installation, the contents of a Secret."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from typing_extensions import override

from app.domain.cache.source_limits import INTERNET_ONLY, SourceLimits
from app.domain.errors import invalid_manifest

CACHE_MOUNT_PATH = "/cache"
DATA_MOUNT_PATH = "/mnt"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetIdentity:
    """The identity of a SampleSet, which the labels of all its objects carry."""

    uid: str
    namespace: str
    name: str
    installation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSite:
    """The settings of the installation for the runtime servers of every set."""

    runtime_image: str = ""
    cache_mount_path: str = CACHE_MOUNT_PATH
    data_mount_path: str = DATA_MOUNT_PATH
    sources: SourceLimits = INTERNET_ONLY

    def data_dir(self, set_name: str) -> str:
        """Return the directory in which the containers of a set mount its data."""
        return f"{self.data_mount_path}/{set_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretValues:
    """A Secret as read from the cluster, decoded. Its repr shows none of its contents."""

    name: str
    namespace: str
    data: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class StorageKeys:
    """The two keys of an object storage. Neither str nor repr shows them."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)

    @override
    def __str__(self) -> str:
        return "StorageKeys(***)"


def storage_keys_of(secret: SecretValues) -> StorageKeys | None:
    """Return the keys in a Secret, or None if it has neither, since some storages need none.

    Raises:
        InvalidManifest: the Secret has one key without the other.
    """
    access, hidden = secret.data.get("access-key", ""), secret.data.get("secret-key", "")
    if not access and not hidden:
        return None
    if access and hidden:
        return StorageKeys(access, hidden)
    present, missing = ("access-key", "secret-key") if access else ("secret-key", "access-key")
    raise invalid_manifest(
        "IncompleteKeys", f"secret {secret.name} is not valid: it has the key {present} without {missing}"
    )
