"""The settings that limit what SampleSets and SampleJobs may name."""

from typing import Annotated

from pydantic import Field, field_validator

from app.domain.cache.limits import DEFAULT_CACHE_ROOTS, CacheLimits
from app.domain.cache.source_limits import NETWORK_STORAGES, SourceLimits, wrong_host_entry
from app.settings.serving import Names
from app.settings.usage import UsageSettings


class SampleSetSettings(UsageSettings):
    """Limits for the manifests of tenants."""

    cache_roots: Annotated[
        Names,
        Field(description="comma-separated directories of nodes in which the caches of SampleSets must be"),
    ] = DEFAULT_CACHE_ROOTS
    source_schemes: Annotated[
        Names, Field(description="comma-separated storages that the sources of SampleSets may use")
    ] = NETWORK_STORAGES
    source_hosts: Annotated[
        Names,
        Field(description="comma-separated hosts and networks, not of the internet, that sources may name; see docs"),
    ] = ()
    file_directories: Annotated[
        Names,
        Field(description="comma-separated directories in which file:// sources, and volumes in files, may be"),
    ] = ()
    secret_namespaces: Annotated[
        Names,
        Field(description="comma-separated namespaces whose Secrets SampleSets of all namespaces may use"),
    ] = ()

    @field_validator("source_schemes")
    @classmethod
    def _name_storages(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := sorted(set(value) - set(NETWORK_STORAGES)):
            known = ", ".join(NETWORK_STORAGES)
            raise ValueError(f"there is no storage {', '.join(unknown)} in a network; the storages are {known}")
        return value

    @field_validator("source_hosts")
    @classmethod
    def _name_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [text for entry in value if (text := wrong_host_entry(entry))]:
            raise ValueError("; ".join(wrong))
        return value

    @field_validator("file_directories")
    @classmethod
    def _name_directories(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [path for path in value if not path.startswith("/") or ".." in path.split("/")]:
            raise ValueError(f"{', '.join(wrong)}: expected absolute paths without ..")
        return value

    def cache_limits(self) -> CacheLimits:
        """Return the limits without a namespace; the caller adds that of the manifest."""
        return CacheLimits(
            namespace="",
            secret_namespaces=frozenset(self.secret_namespaces),
            cache_roots=self.cache_roots,
            sources=self.source_limits(),
        )

    def source_limits(self) -> SourceLimits:
        return SourceLimits(
            schemes=frozenset(self.source_schemes), hosts=self.source_hosts, directories=self.file_directories
        )
