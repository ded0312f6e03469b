"""The interfaces of kinds: `Kind`, which every kind implements, and `PodlessKind` for kinds without pods."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from app.domain.cache.limits import CacheLimits
from app.domain.errors import FieldError
from app.domain.kubernetes.names import DNS_LABEL_MAX
from app.domain.plan import JobWarning, Manifest
from app.domain.vocabulary import ConditionType

JOBS: Final = "jobs"
"""The resource of all kinds with pods."""


class Kind(ABC):
    """A kind of manifest. Implementations are stateless; one instance serves all manifests.

    `Dialect` adds what a job needs: plan, pods, scaling and pause. `PodlessKind` adds what all other kinds need.
    """

    kind: ClassVar[str]
    api_versions: ClassVar[tuple[str, ...]]  # accepted values of `apiVersion`, the canonical one first
    mutable_fields: ClassVar[tuple[str, ...]]  # JSON pointers that PUT and PATCH may change; * stands for any step
    resource: ClassVar[str]  # the name of its collection in the API and in the feed
    supports_pause: ClassVar[bool] = False

    @abstractmethod
    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        """Return an error for each immutable field in which two accepted manifests differ."""

    @abstractmethod
    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the manifest, for `GET /api/v1/kinds`."""


class Figures(BaseModel):
    """The part of a status that only one kind has. The fields join those that every status has."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, use_attribute_docstrings=True, extra="forbid"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The inputs of the figures of an object. `gone` says that no object in the cluster is left of a deleted one."""

    manifest: Manifest
    record: Any
    cache_observed_at: datetime | None = None
    deleted: bool = False
    gone: bool = False


class PodlessKind(Kind):
    """A kind without pods: a spec with rules, and a record that its reconcile step writes.

    If the kind `has_objects` in the cluster, a deleted object keeps its name until its reconcile step finds that all
    objects are gone.
    """

    word: ClassVar[str]  # its name in operation ids, such as sample_set
    name_max: ClassVar[int] = DNS_LABEL_MAX
    has_objects: ClassVar[bool] = False
    is_about_set: ClassVar[bool] = False  # whether its objects refer to a SampleSet, by which lists can be filtered
    record: ClassVar[type[Any]]  # a frozen dataclass with a `phase`, whose fields all have defaults
    phases: ClassVar[type[StrEnum]]
    ended: ClassVar[frozenset[str]] = frozenset()  # its terminal phases
    figures: ClassVar[type[Figures]] = Figures
    details: ClassVar[type[Figures]] = Figures  # what only the whole object shows, beside its status, since it is long
    example: ClassVar[Manifest]  # for the OpenAPI document
    example_patch: ClassVar[Manifest]

    @abstractmethod
    def accept(self, manifest: Manifest, limits: CacheLimits) -> Manifest:
        """Return the manifest as it is stored, with defaults.

        Raises:
            InvalidManifest: the manifest is not valid; the error has every problem of it.
        """

    def set_name(self, manifest: Manifest) -> str:
        """Return the name of the SampleSet that an accepted manifest refers to; without one, its own name."""
        return str(manifest["metadata"]["name"])

    def current(self, manifest: Manifest) -> Manifest:
        """Return a stored manifest, or an edit of one, without values that only an earlier version accepted."""
        return manifest

    def limits_of_edit(self, stored: Manifest, limits: CacheLimits) -> CacheLimits:  # noqa: ARG002  for kinds that widen
        """The limits for an edit of a stored manifest, which may keep what new manifests may not have."""
        return limits

    def require_editable(self, record: Any) -> None:
        """Raise Conflict if the progress of the object forbids every edit."""

    def frozen(self, record: Any, stored: Manifest, new: Manifest) -> Sequence[FieldError]:  # noqa: ARG002  as above
        """Return errors for changes that the progress of the object forbids."""
        return ()

    def shown(self, facts: Facts) -> Figures:  # noqa: ARG002  as above
        """Return the part of the status that only this kind has."""
        return self.figures()

    def detailed(self, record: Any) -> Figures:  # noqa: ARG002  as above
        """Return what only the whole object shows."""
        return self.details()

    def native_status(self, record: Any) -> dict[str, Any]:
        """Return the status object as the kind's own system shows it."""
        return {"phase": str(record.phase)}

    def warnings(self, manifest: Manifest, record: Any) -> Sequence[JobWarning]:  # noqa: ARG002  as above
        """Return what a client should know about an accepted manifest, and about the objects that were made of it."""
        return ()

    def conditions(
        self,
        record: Any,  # noqa: ARG002  as above
        known: Collection[ConditionType],  # noqa: ARG002  as above
    ) -> Mapping[ConditionType, tuple[bool, str, str]]:
        """Return whether each condition of the object holds, with its reason and message.

        The result contains all `known` conditions, which the object has already: a condition that has appeared stays.
        """
        return {}
