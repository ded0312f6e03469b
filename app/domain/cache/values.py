"""What a driver is given beside the spec: who a set is, what the installation says, what a Secret holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from typing_extensions import override

from app.domain.cache.refusals import refusal

CACHE_MOUNT_PATH = "/cache"
DATA_MOUNT_PATH = "/mnt"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetIdentity:
    """Who a SampleSet is; on every object that is made for it."""

    uid: str
    namespace: str
    name: str
    installation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSite:
    """What the installation says about every set's runtime servers."""

    runtime_image: str = ""
    cache_mount_path: str = CACHE_MOUNT_PATH
    data_mount_path: str = DATA_MOUNT_PATH

    def data_dir(self, set_name: str) -> str:
        """Where the servers of a set have its data."""
        return f"{self.data_mount_path}/{set_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretValues:
    """A Secret as read from the cluster, decoded. Nothing of what it holds is shown by repr."""

    name: str
    namespace: str
    data: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Both keys of a storage. Shown by nothing but their own fields."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)

    @override
    def __str__(self) -> str:
        return "Credentials(***)"


def credentials_of(secret: SecretValues) -> Credentials | None:
    """The keys in a Secret; None where it has neither, for storages that need none."""
    access, hidden = secret.data.get("access-key", ""), secret.data.get("secret-key", "")
    if not access and not hidden:
        return None
    if access and hidden:
        return Credentials(access, hidden)
    has, lacks = ("access-key", "secret-key") if access else ("secret-key", "access-key")
    raise refusal("IncompleteKeys", f"secret {secret.name} is not valid: it has the key {has} without {lacks}")
