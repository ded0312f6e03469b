"""What every kind implements."""

from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from app.domain.errors import FieldError
from app.domain.kinds.changes import immutable_changes
from app.domain.kinds.spec.checks import Location
from app.domain.kinds.spec.model import SpecModel
from app.domain.kinds.spec.schema import manifest_schema
from app.domain.plan import Manifest

JOBS: Final = "jobs"
"""The resource of all kinds of jobs. Each sample kind has a resource of its own."""


class Kind(ABC):
    """A kind of manifest. Implementations are stateless; one instance serves all manifests.

    `JobKind` adds what a job needs: plan, pods, scaling and pause. `SampleKind` adds what the data cache needs.
    """

    name: ClassVar[str]  # the `kind` of its manifests
    api_versions: ClassVar[tuple[str, ...]]  # accepted values of `apiVersion`, the canonical one first
    mutable_fields: ClassVar[tuple[str, ...]]  # JSON pointers that PUT and PATCH may change; * stands for any step
    resource: ClassVar[str]  # the name of its collection in the API and in the feed
    supports_pause: ClassVar[bool] = False
    spec_model: type[SpecModel]

    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        """Return an error for each immutable field in which two accepted manifests differ."""
        return immutable_changes(stored, new, self.mutable_fields)

    def is_consequence(self, error: FieldError, left_out: Sequence[Location]) -> bool:  # noqa: ARG002  for kinds that know
        """Return whether the error may exist only because the fields at these places could not be read."""
        return False

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the manifest, for `GET /api/v1/kinds`."""
        return manifest_schema(self.name, self.api_versions, self.spec_model)
