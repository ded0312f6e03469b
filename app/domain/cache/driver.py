"""What a cache driver is, and which ones there are.

The seed's Driver is two interfaces here: this one says what is to be, and the runtime servers' CacheEngine does it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

from app.domain.cache.job_options import JobOptions
from app.domain.cache.juicefs import JuiceFSDriver
from app.domain.cache.naming import DEFAULT_DRIVER, JUICEFS
from app.domain.cache.refusals import refusal
from app.domain.cache.sample_job import SampleJobSpec
from app.domain.cache.sample_set import SampleSetSpec
from app.domain.cache.values import CacheSite, SecretValues, SetIdentity
from app.domain.errors import shorten
from app.domain.plan import Manifest


class CacheDriver(Protocol):
    """All of it pure and repeatable: the same values make the same objects, to the byte.

    What can be wrong raises InvalidManifest, with upstream's sentence and a code; none of it quotes a key.
    """

    @property
    def name(self) -> str: ...

    def get_label(self, set_name: str) -> str:
        """The label that marks a set's objects."""
        ...

    def get_node_label(self, namespace: str, set_name: str) -> str:
        """The label that marks the nodes that have a set's data."""
        ...

    def get_runtime_name(self, set_name: str) -> str: ...

    def get_service_name(self, set_name: str) -> str: ...

    def create_pv(self, identity: SetIdentity, spec: SampleSetSpec, secret: SecretValues) -> Manifest:
        """The PersistentVolume; of the Secret it holds no more than where it is."""
        ...

    def create_pvc(self, identity: SetIdentity) -> Manifest:
        """The claim that runtime servers and training jobs mount."""
        ...

    def create_service(self, identity: SetIdentity) -> Manifest: ...

    def create_token_secret(self, identity: SetIdentity, token: str) -> Manifest:
        """The Secret by which runtime servers know their controller."""
        ...

    def create_runtime(
        self, identity: SetIdentity, spec: SampleSetSpec, pv: Mapping[str, Any], site: CacheSite
    ) -> Manifest:
        """The StatefulSet of runtime servers, with the cache directories that the PersistentVolume was made with."""
        ...

    def create_sync_job_options(
        self,
        identity: SetIdentity,
        spec: SampleSetSpec,
        job: SampleJobSpec | None,
        secret: SecretValues | None,
        site: CacheSite,
    ) -> JobOptions:
        """Without a job, those of the set's own first sync. The Secret is that of the source."""
        ...

    def create_warmup_job_options(
        self, identity: SetIdentity, spec: SampleSetSpec, job: SampleJobSpec, site: CacheSite
    ) -> JobOptions: ...

    def create_rmr_job_options(self, identity: SetIdentity, job: SampleJobSpec, site: CacheSite) -> JobOptions: ...

    def create_clear_job_options(self, job: SampleJobSpec, stateful_set: Mapping[str, Any]) -> JobOptions: ...


DRIVERS: Final[Mapping[str, CacheDriver]] = MappingProxyType({JUICEFS: JuiceFSDriver()})


def get_driver(name: str) -> CacheDriver:
    """The driver of this name; an empty one is the default."""
    driver = DRIVERS.get(name or DEFAULT_DRIVER)
    if driver is None:
        detail = f"driver {shorten(name)} not found"
        raise refusal("DriverNotFound", detail, "/spec/csi/driver", "one of " + ", ".join(DRIVERS))
    return driver
