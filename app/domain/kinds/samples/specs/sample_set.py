"""The spec of a SampleSet (batch.paddlepaddle.org/v1alpha1) and its rules."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeAlias

from pydantic import ConfigDict, Field

from app.domain.cache.limits import CacheLimits
from app.domain.cache.naming import JUICEFS, NAME_MAX
from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kinds.samples.specs.directories import check_default_directory, check_directories, check_distinct
from app.domain.kinds.samples.specs.mount_options import (
    CacheLevel,
    JuiceFSMountOptions,
    cache_bases,
    check_mount_options,
)
from app.domain.kinds.samples.specs.paths import EMPTY_LIST
from app.domain.kinds.samples.specs.secret_refs import SecretRef, check_secret_ref
from app.domain.kinds.samples.specs.sources import EXPECTED, check_source, wrong_authority
from app.domain.kinds.spec.model import SpecModel
from app.domain.kubernetes import names
from app.domain.pod_template import validate_pod_template

API_VERSION: Final = "batch.paddlepaddle.org/v1alpha1"
KIND: Final = "SampleSet"
MUTABLE_FIELDS: Final = (
    "/metadata/labels",
    "/metadata/annotations",
    "/spec/partitions",
    "/spec/noSync",
    "/spec/source",
    "/spec/secretRef",
)
_MEDIUMS: Final = ("MEM", "SSD", "HDD")
_MIN_URI: Final = 10  # upstream's minimum

Partitions: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]


def _requires(*fields: str) -> Callable[[dict[str, Any]], None]:
    """Mark fields as required in the JSON schema only.

    For pydantic they are optional: a missing one is then reported by the checks, together with all other problems.
    """

    def change(schema: dict[str, Any]) -> None:
        schema["required"] = list(fields)
        for field in fields:
            schema["properties"][field].pop("default", None)

    return change


class DataSource(SpecModel):
    """The source of the data. `secretRef` names the Secret with its keys; the default is the Secret of the set."""

    uri: str | None = Field(default=None, json_schema_extra={"minLength": _MIN_URI})
    """The address of the data, in the form of `juicefs sync`, without keys. Only a set with `noSync` needs none."""
    secret_ref: SecretRef | None = None
    """The Secret with the keys of the source."""


class Csi(SpecModel):
    """The CSI driver of the volume."""

    driver: str = Field(default=JUICEFS, json_schema_extra={"enum": [JUICEFS]})
    """Name of the driver."""
    juice_fs_mount_options: JuiceFSMountOptions | None = Field(default=None, alias="juiceFSMountOptions")
    """The mount options of the volume."""


class Cache(SpecModel):
    """Where the nodes cache the data."""

    levels: list[CacheLevel] | None = Field(default=None, json_schema_extra={"minItems": 1})
    """The default is none: Go clients write `cache: {}`. A level without a path names no directory."""


class SampleSetSpec(SpecModel):
    """The spec of a SampleSet."""

    model_config = ConfigDict(json_schema_extra=_requires("partitions", "secretRef"))

    partitions: Partitions = 0
    """The number of nodes that cache the data, with one runtime server each."""
    source: DataSource | None = None
    """The source from which the data is copied."""
    secret_ref: SecretRef | None = None
    """The Secret of the volume: name, storage, metaurl, bucket and, if the storage needs them, both keys."""
    no_sync: bool = False
    """The volume already contains the data, so there is no first sync."""
    csi: Csi = Csi()
    """The driver and its mount options."""
    cache: Cache | None = None
    """The directories of the cache."""
    node_affinity: dict[str, Any] | None = Field(
        default=None, json_schema_extra={"x-kubernetes-type": "io.k8s.api.core.v1.NodeAffinity"}
    )
    """The nodes that may cache the data: core/v1 NodeAffinity."""
    tolerations: list[dict[str, Any]] = Field(
        default=[],
        json_schema_extra={
            "items": {
                "type": "object",
                "additionalProperties": True,
                "x-kubernetes-type": "io.k8s.api.core.v1.Toleration",
            }
        },
    )
    """The tolerations of the runtime servers: core/v1 Toleration."""

    @property
    def mount_options(self) -> JuiceFSMountOptions | None:
        return self.csi.juice_fs_mount_options

    @property
    def levels(self) -> list[CacheLevel]:
        return (self.cache.levels if self.cache else None) or []

    @property
    def source_uri(self) -> str:
        """The URI of the source, or an empty text."""
        return (self.source.uri if self.source else None) or ""


def check_sample_set(
    spec: SampleSetSpec, metadata: Mapping[str, Any], base: str, limits: CacheLimits, problems: Problems
) -> None:
    """Report every violated rule of a spec that matches the schema."""
    check_set_name(metadata.get("name"), "/metadata/name", problems)
    if not spec.partitions:
        problems.add(pointer_to(base, "partitions"), "Required", "the field is required", "1 or more")
    elif spec.partitions > limits.max_partitions:
        accepted = f"1 to {limits.max_partitions}"
        problems.add(pointer_to(base, "partitions"), "OutOfRange", "the number is too large", accepted)
    check_secret_ref(spec.secret_ref, pointer_to(base, "secretRef"), limits, problems)
    _check_source(spec, pointer_to(base, "source"), limits, problems)
    if spec.csi.driver != JUICEFS:
        detail = f"driver {shorten(spec.csi.driver)} not found"
        problems.add(pointer_to(base, "csi", "driver"), "DriverNotFound", detail, "one of " + JUICEFS)
    before = len(problems)
    if spec.mount_options is not None:
        at = pointer_to(base, "csi", "juiceFSMountOptions")
        check_mount_options(spec.mount_options, at, problems, limits.cache_roots)
    _check_levels(spec, pointer_to(base, "cache", "levels"), limits, problems)
    if not any(level.path for level in spec.levels) and not (spec.mount_options and spec.mount_options.cache_dir):
        check_default_directory(base, problems, limits.cache_roots)
    # Only valid directories can be compared.
    if len(problems) == before:
        check_distinct(cache_bases(spec.mount_options, spec.levels), base, problems)
    _check_placement(spec, base, problems)


def check_set_name(name: Any, pointer: str, problems: Problems) -> None:
    """Check that a set's name can begin the names of its Service and StatefulSet.

    Names that are not valid in general are reported elsewhere.
    """
    if not isinstance(name, str) or names.dns_subdomain(name) or names.label_value(name):
        return
    if len(name) > NAME_MAX:
        detail = f"the name has {len(name)} characters; pods of its StatefulSet could not be created"
        problems.add(pointer, "NameTooLong", detail, f"{NAME_MAX} characters or fewer")
    elif wrong := names.dns_1035_label(name):
        problems.add(pointer, "InvalidName", wrong, "lower-case letters, digits and -, a letter first")


def _check_source(spec: SampleSetSpec, pointer: str, limits: CacheLimits, problems: Problems) -> None:
    if spec.source is None:
        if not spec.no_sync:
            problems.add(pointer, "DataSourceEmpty", "data source cannot be empty", "a source, or noSync: true")
        return
    uri, at = spec.source.uri, pointer_to(pointer, "uri")
    # With noSync the source is not read. Only keys in its URI are refused then, since they would be stored and shown.
    if uri is None and spec.no_sync:
        pass
    elif 0 < len(uri or "") < _MIN_URI:
        problems.add(at, "TooShort", f"the uri has {len(uri or '')} characters", f"{_MIN_URI} or more: {EXPECTED}")
    elif not uri or not spec.no_sync:
        # The controller does not sync a stored source that is not allowed any more, and the rest can still be edited.
        check_source(uri or "", at, problems, None if uri and uri == limits.stored_source else limits.sources)
    elif wrong := wrong_authority(uri):
        problems.add(at, *wrong)
    if spec.source.secret_ref is not None:
        check_secret_ref(spec.source.secret_ref, pointer_to(pointer, "secretRef"), limits, problems, is_whole=False)


def _check_levels(spec: SampleSetSpec, pointer: str, limits: CacheLimits, problems: Problems) -> None:
    if spec.cache is not None and spec.cache.levels == []:
        problems.add(pointer, *EMPTY_LIST)
    for index, level in enumerate(spec.levels):
        if problems.full:
            return
        here = pointer_to(pointer, index)
        if level.medium_type is not None and level.medium_type not in _MEDIUMS:
            detail = "the value is not one of those accepted"
            problems.add(pointer_to(here, "mediumType"), "InvalidValue", detail, "one of " + ", ".join(_MEDIUMS))
        if level.path is not None:
            check_directories(level.path, pointer_to(here, "path"), problems, limits.cache_roots)


def _check_placement(spec: SampleSetSpec, base: str, problems: Problems) -> None:
    """Check affinity and tolerations with the schema of a pod that contains them."""
    # The container is valid, so every error belongs to a field of the user.
    pod: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "tolerations": spec.tolerations}
    if spec.node_affinity is not None:
        pod["affinity"] = {"nodeAffinity": spec.node_affinity}
    found = Problems()
    validate_pod_template({"spec": pod}, base, found)
    prefix = f"{base}/spec"
    for error in found.errors:
        pointer = base + error.pointer.removeprefix(prefix).replace("/affinity/", "/", 1)
        problems.add(pointer, error.code, error.detail, error.accepted)
