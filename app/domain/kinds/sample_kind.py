"""The interface of sample kinds, which make no pods of manifests, and the values that its methods take and return."""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from app.domain.cache.limits import CacheLimits
from app.domain.errors import FieldError, Problems, pointer_to
from app.domain.kinds.base import Kind
from app.domain.kinds.envelope import read_envelope
from app.domain.kinds.spec.checks import SpecChecks, read_and_check
from app.domain.kubernetes import labels
from app.domain.kubernetes.names import DNS_LABEL_MAX
from app.domain.plan import JobWarning, Manifest
from app.domain.status.conditions import Wanted
from app.domain.vocabulary import ConditionType


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


class SampleKind(Kind):
    """A kind of the data cache: a spec with rules, and a record that its reconcile step writes.

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

    def accept(self, manifest: Manifest, limits: CacheLimits) -> Manifest:
        """Return the manifest as it is stored, with defaults.

        Raises:
            InvalidManifest: the manifest is not valid; the error has every problem of it.
        """
        problems = Problems()
        envelope = read_envelope(manifest, problems)
        _refuse_settings(envelope, problems)
        checks: SpecChecks[Any] = SpecChecks(
            check=lambda spec, found: self.check(spec, envelope["metadata"], limits, found),
            is_consequence=self.is_consequence,
        )
        spec = read_and_check(self.spec_model, manifest.get("spec"), problems, checks)
        problems.raise_if_any(f"the {self.name} is not valid")
        assert spec is not None, "without a problem there is a spec"
        return {**envelope, "spec": spec.model_dump(by_alias=True, exclude_none=True)}

    @abstractmethod
    def check(self, spec: Any, metadata: Mapping[str, Any], limits: CacheLimits, problems: Problems) -> None:
        """Report every error of a spec that has the right shape."""

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

    def forbidden_changes(self, record: Any, stored: Manifest, new: Manifest) -> Sequence[FieldError]:  # noqa: ARG002  as above
        """Return errors for changes that the progress of the object forbids."""
        return ()

    def make_figures(self, facts: Facts) -> Figures:  # noqa: ARG002  as above
        """Return the part of the status that only this kind has."""
        return self.figures()

    def make_details(self, record: Any) -> Figures:  # noqa: ARG002  as above
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
    ) -> Wanted:
        """Return the conditions of the object.

        The result contains all `known` conditions, which the object has already: a condition that has appeared stays.
        """
        return {}


def _refuse_settings(envelope: Manifest, problems: Problems) -> None:
    """Report annotations of jobgate, which are settings of jobs."""
    annotations = envelope["metadata"].get("annotations")
    for key in annotations if isinstance(annotations, dict) else ():
        if key in labels.CLIENT_ANNOTATIONS:
            at = pointer_to("/metadata/annotations", key)
            problems.add(at, "NotSupported", "this is a setting of jobs", "leave it out")
