"""GenericJob of batch.tensorstack.dev/v1beta1: replicas of any type, and rules over their ranks for the job's end.

`spellings` makes older spellings current, `validation` checks a spec, `plan` and `native` translate it;
docs/kinds/generic-job.md lists the differences from TensorStack.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

from typing_extensions import override

from app.domain.errors import Conflict, FieldError, Problems, pointer_to
from app.domain.kinds.generic_job.native import native_status
from app.domain.kinds.generic_job.plan import plan_job
from app.domain.kinds.generic_job.spec import GenericJobSpec
from app.domain.kinds.generic_job.spellings import current_spelling
from app.domain.kinds.generic_job.validation import validate
from app.domain.kinds.job_kind import Accepted, Context, JobKind, Site, StatusFacts
from app.domain.kinds.spec.checks import Location
from app.domain.kinds.spec.spelling import Spelling
from app.domain.kinds.warnings import ignored_restart_policies, warning
from app.domain.plan import JobIdentity, JobPlan, JobWarning, Manifest
from app.domain.pod_template import validate_pod_template
from app.domain.pod_template.reading import mapping
from app.domain.policy.template import DeclaredTemplate


class GenericJobKind(JobKind[GenericJobSpec]):
    """The rules of GenericJob."""

    name: ClassVar[str] = "GenericJob"
    api_versions: ClassVar[tuple[str, ...]] = ("batch.tensorstack.dev/v1beta1",)
    mutable_fields: ClassVar[tuple[str, ...]] = (
        "/metadata/labels",
        "/metadata/annotations",
        "/spec/cleanUpPolicy",
        "/spec/runMode/pause/enabled",
    )
    supports_pause: ClassVar[bool] = True
    spec_model = GenericJobSpec

    @override
    def current_spelling(self, spec: Any, problems: Problems) -> Spelling:
        return current_spelling(spec, "/spec", problems)

    @override
    def check(self, spec: GenericJobSpec, context: Context, problems: Problems) -> None:
        validate(spec, context.job, "/spec", context.limits, problems)

    @override
    def is_consequence(self, error: FieldError, left_out: Sequence[Location]) -> bool:
        consequences: set[str] = set()
        for place in left_out:
            # Without the size of a type, its ranks and all sums are unknown.
            if place[-1] == "replicas":
                consequences |= {"UnknownRank", "TooManyReplicas", "NoReplicas", "InvalidVariable"}
            elif place[0] == "service":
                consequences.add("InvalidVariable")
        return error.code in consequences

    @override
    def check_unreadable(self, spec: Any, problems: Problems) -> None:
        replicas = spec.get("replicaSpecs") if isinstance(spec, dict) else None
        for index, replica in enumerate(replicas if isinstance(replicas, list) else []):
            if isinstance(replica, dict) and isinstance(replica.get("template"), dict):
                at = pointer_to("/spec/replicaSpecs", index, "template")
                validate_pod_template(replica["template"], at, problems)

    @override
    def stored_spec(self, spec: GenericJobSpec) -> Manifest:
        """Return the spec with its defaults. An absent limit of the policy Always stays absent: it means no limit."""
        stored = spec.model_dump(by_alias=True, exclude_none=True)
        for replica in stored["replicaSpecs"]:
            restart = replica["restartPolicy"]
            if restart["policy"] != "Always":
                restart.setdefault("limit", 0)
        return stored

    @override
    def plan(self, accepted: Accepted[GenericJobSpec], identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
        return plan_job(accepted.spec, accepted.manifest, identity, resumed=resumed, site=site)

    @override
    def pod_templates(self, posted: Manifest, accepted: Accepted[GenericJobSpec]) -> Sequence[DeclaredTemplate]:
        posted_spec = posted.get("spec")

        def locate(index: int, pointer: str) -> str:
            # For an error only: most templates have none.
            spelling = current_spelling(posted_spec, "/spec", Problems())
            return spelling.posted_pointer(f"/spec/replicaSpecs/{index}/template{pointer}")

        return [
            DeclaredTemplate(template=replica["template"], locate=partial(locate, index))
            for index, replica in enumerate(accepted.manifest["spec"]["replicaSpecs"])
        ]

    @override
    def warnings(self, posted: Manifest, accepted: Accepted[GenericJobSpec]) -> Iterator[JobWarning]:
        yield from ignored_restart_policies(self.pod_templates(posted, accepted))
        restarts = [replica.restart_policy for replica in accepted.spec.replica_specs]
        if not any(restart.policy == "OnFailure" and not restart.limit for restart in restarts):
            return
        spelling = current_spelling(posted.get("spec"), "/spec", Problems())
        for index, replica in enumerate(spelling.spec["replicaSpecs"]):
            restart = mapping(replica.get("restartPolicy"))
            # By default the policy is OnFailure too, but only its author can expect restarts of it.
            if restart.get("policy") == "OnFailure" and restart.get("limit") is None:
                yield warning(
                    spelling.posted_pointer(pointer_to("/spec/replicaSpecs", index, "restartPolicy")),
                    "the policy OnFailure without a limit restarts nothing: as in upstream, the limit is 0 by default; "
                    "set limit to the number of restarts",
                )

    @override
    def native_status(self, accepted: Accepted[GenericJobSpec], facts: StatusFacts) -> dict[str, Any]:
        return native_status(accepted.spec, accepted.name, facts)

    @override
    def with_pause(self, accepted: Accepted[GenericJobSpec], *, paused: bool) -> Accepted[GenericJobSpec]:
        manifest = accepted.manifest
        mode = manifest["spec"]["runMode"]
        if paused and mode["debug"]["enabled"]:
            raise Conflict("a job in debug mode cannot be paused", code="DebugMode")
        pause = {**mode["pause"], "enabled": paused}
        return self.read({**manifest, "spec": {**manifest["spec"], "runMode": {**mode, "pause": pause}}})
