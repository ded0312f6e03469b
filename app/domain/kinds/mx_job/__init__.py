"""MxJob of mxnet.mlkube.io/v1beta1: MXNet training on one worker, or with a scheduler, servers and workers.

`validation` checks a spec, `plan` and `native` translate it; docs/kinds/mx-job.md lists the differences from
mxnet-operator.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override

from app.domain.errors import FieldError, Problems
from app.domain.kinds.job_kind import Accepted, Context, Given, JobKind, Site, StatusFacts
from app.domain.kinds.mx_job.native import native_status
from app.domain.kinds.mx_job.plan import plan_job
from app.domain.kinds.mx_job.spec import MxJobSpec
from app.domain.kinds.mx_job.validation import validate
from app.domain.kinds.spec.checks import Location
from app.domain.kinds.warnings import ignored_restart_policies
from app.domain.plan import JobIdentity, JobPlan, JobWarning, Manifest
from app.domain.policy.template import DeclaredTemplate

# As upstream.
_RUNTIME_ID_LENGTH: Final = 4
# The codes of errors that may exist only because the field of this name could not be read and was left out.
_CONSEQUENCES: Final[Mapping[str, frozenset[str]]] = {
    "template": frozenset({"MissingTemplate"}),
    "mxReplicaType": frozenset({"MissingReplicaType", "WorkersInLocalMode", "Duplicate", "NoReplicas"}),
    "jobMode": frozenset({"UnknownJobMode"}),
    "replicaSpecs": frozenset({"MissingReplicaType", "NoReplicas"}),
}


class MxJobKind(JobKind[MxJobSpec]):
    """The rules of MxJob."""

    name: ClassVar[str] = "MxJob"
    api_versions: ClassVar[tuple[str, ...]] = ("mxnet.mlkube.io/v1beta1",)
    mutable_fields: ClassVar[tuple[str, ...]] = ("/metadata/labels", "/metadata/annotations")
    spec_model = MxJobSpec

    @override
    def complete(self, spec: MxJobSpec, given: Given) -> MxJobSpec:
        """Return the spec with a RuntimeId: that of the user, otherwise that of the stored job, otherwise a new one."""
        if spec.runtime_id is not None:
            return spec
        drawn = given.stored["spec"]["RuntimeId"] if given.stored else given.suffix()[:_RUNTIME_ID_LENGTH]
        return spec.model_copy(update={"runtime_id": drawn})

    @override
    def check(self, spec: MxJobSpec, context: Context, problems: Problems) -> None:
        validate(spec, context.job, "/spec", context.limits, problems)

    @override
    def is_consequence(self, error: FieldError, left_out: Sequence[Location]) -> bool:
        return any(error.code in _CONSEQUENCES.get(str(place[-1]), ()) for place in left_out)

    @override
    def plan(self, accepted: Accepted[MxJobSpec], identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
        return plan_job(accepted.spec, accepted.manifest, identity, site)

    @override
    def pod_templates(self, posted: Manifest, accepted: Accepted[MxJobSpec]) -> Sequence[DeclaredTemplate]:
        return [
            DeclaredTemplate.at(replica["template"], f"/spec/replicaSpecs/{index}/template")
            for index, replica in enumerate(accepted.manifest["spec"]["replicaSpecs"])
        ]

    @override
    def warnings(self, posted: Manifest, accepted: Accepted[MxJobSpec]) -> Iterator[JobWarning]:
        return ignored_restart_policies(self.pod_templates(posted, accepted))

    @override
    def native_status(self, accepted: Accepted[MxJobSpec], facts: StatusFacts) -> dict[str, Any]:
        return native_status(accepted.spec, accepted.name, facts)
