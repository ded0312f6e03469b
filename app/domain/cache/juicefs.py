"""JuiceFS, through its CSI driver."""

from collections.abc import Mapping
from typing import Any, Final

from app.domain.cache import job_options, manifests, naming, runtime
from app.domain.cache.job_options import JobOptions
from app.domain.cache.sample_job import SampleJobSpec
from app.domain.cache.sample_set import SampleSetSpec
from app.domain.cache.values import CacheSite, SecretValues, SetIdentity, credentials_of
from app.domain.plan import Manifest


class JuiceFSDriver:
    name: Final = naming.JUICEFS

    def get_label(self, set_name: str) -> str:
        return naming.label_of(self.name, set_name)

    def get_node_label(self, namespace: str, set_name: str) -> str:
        return naming.node_label_of(self.name, namespace, set_name)

    def get_runtime_name(self, set_name: str) -> str:
        return naming.runtime_name(set_name)

    def get_service_name(self, set_name: str) -> str:
        return naming.service_name(set_name)

    def create_pv(self, identity: SetIdentity, spec: SampleSetSpec, secret: SecretValues) -> Manifest:
        return manifests.persistent_volume(identity, self.name, spec, secret)

    def create_pvc(self, identity: SetIdentity) -> Manifest:
        return manifests.claim(identity, self.name)

    def create_service(self, identity: SetIdentity) -> Manifest:
        return manifests.service(identity, self.name)

    def create_token_secret(self, identity: SetIdentity, token: str) -> Manifest:
        return manifests.token_secret(identity, self.name, token)

    def create_runtime(
        self, identity: SetIdentity, spec: SampleSetSpec, pv: Mapping[str, Any], site: CacheSite
    ) -> Manifest:
        return runtime.runtime(identity, self.name, spec, pv, site)

    def create_sync_job_options(
        self,
        identity: SetIdentity,
        spec: SampleSetSpec,
        job: SampleJobSpec | None,
        secret: SecretValues | None,
        site: CacheSite,
    ) -> JobOptions:
        return job_options.sync_options(
            job.sync_options if job else None,
            spec.source.uri if spec.source else None,
            credentials_of(secret) if secret else None,
            site.data_dir(identity.name),
        )

    def create_warmup_job_options(
        self, identity: SetIdentity, spec: SampleSetSpec, job: SampleJobSpec, site: CacheSite
    ) -> JobOptions:
        return job_options.warmup_options(job.warmup_options, spec.partitions, site.data_dir(identity.name))

    def create_rmr_job_options(self, identity: SetIdentity, job: SampleJobSpec, site: CacheSite) -> JobOptions:
        return job_options.rmr_options(job.rmr_options, site.data_dir(identity.name))

    def create_clear_job_options(self, job: SampleJobSpec, stateful_set: Mapping[str, Any]) -> JobOptions:
        return job_options.clear_options(job.clear_options, stateful_set)
