"""From a decoded document to a manifest that can be stored, and from a stored one to what it means. Pure.

document ─▶ kind ─▶ name and namespace ─▶ dialect.accept ─▶ plan ─▶ size of what would be made
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from app.domain import labels
from app.domain.dialects import registry
from app.domain.dialects.base import Dialect, Given, Limits, Site
from app.domain.dialects.envelope import allowed_controls
from app.domain.errors import FieldError, InvalidManifest, Problems, pointer_to
from app.domain.kinds import JOBS
from app.domain.manifests.rendered import pod_bytes
from app.domain.names import DNS_LABEL_MAX
from app.domain.plan import JobIdentity, JobPlan, Manifest
from app.domain.policy import PodPolicy
from app.domain.policy.pod_policy import violation
from app.services.wrong_route import refuse_wrong_route

SUFFIX_LENGTH: Final = 5
# Kubernetes' own alphabet for generated names: no vowels and nothing that looks like one.
SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"

Suffix = Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A manifest as it would be stored. `generated` says that another name may be drawn if this one is taken."""

    dialect: Dialect
    manifest: Manifest
    generated: bool

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """What this installation makes of manifests."""

    installation: str
    limits: Limits = field(default_factory=Limits)
    site: Site = field(default_factory=Site)
    policy: PodPolicy = field(default_factory=PodPolicy)

    def draft(
        self,
        document: Manifest,
        namespace: str,
        suffix: Suffix,
        *,
        stored: Manifest | None = None,
        administers: bool = False,
    ) -> Draft:
        """The manifest with its defaults, its name and its namespace; `stored` is the one it replaces.

        Raises:
            InvalidManifest: with every error there is.
            Forbidden: it violates the pod policy, or asks for an exemption that only an administrator may give.
        """
        refuse_wrong_route(document, JOBS, namespace)
        dialect = registry.find(document.get("apiVersion"), document.get("kind"))
        called, generated = named(document, suffix)
        manifest = dialect.accept(placed(called, namespace), self.limits, Given(random=suffix, stored=stored))
        manifest["metadata"].pop("generateName", None)
        manifest["metadata"]["namespace"] = namespace
        if not administers:
            _refuse_exemption(manifest, stored)
        self.policy.refuse_violations(
            dialect.pod_templates(manifest if stored else document, manifest),
            exempt=allowed_controls(manifest),
            before=dialect.pod_templates(stored, stored) if stored else (),
        )
        return Draft(dialect=dialect, manifest=manifest, generated=generated)

    def plan(self, manifest: Manifest, uid: str, *, generation: int = 1, resumed: bool = False) -> JobPlan:
        """What an accepted manifest means."""
        metadata = manifest["metadata"]
        identity = JobIdentity(
            uid=uid,
            kind=manifest["kind"],
            api_version=manifest["apiVersion"],
            namespace=metadata["namespace"],
            name=metadata["name"],
            generation=generation,
            installation=self.installation,
        )
        dialect = registry.find(identity.api_version, identity.kind)
        return dialect.plan(manifest, identity, resumed=resumed, site=self.site)

    def checked_plan(self, manifest: Manifest, uid: str) -> JobPlan:
        """The plan of a new manifest, whose objects are not too large for a cluster.

        Only the last replica of each task is rendered, which is the largest of it.

        Raises:
            InvalidManifest: one of its pods is too large, or all of them together are.
        """
        plan = self.plan(manifest, uid)
        sizes = pod_bytes(plan)
        errors = [*self._too_large(plan, sizes)]
        if errors:
            raise InvalidManifest("the manifest renders to objects that no cluster takes", errors=errors)
        return plan

    def _too_large(self, plan: JobPlan, sizes: Mapping[str, int]) -> Iterator[FieldError]:
        largest, limit = max(sizes.values(), default=0), self.limits.max_rendered_pod_bytes
        if largest > limit:
            detail = f"a pod made from this would have {largest} bytes"
            yield FieldError(pointer="/spec", code="TooLarge", detail=detail, accepted=f"{limit} bytes or fewer")
        total = sum(sizes[task.name] * task.size for task in plan.tasks if task.size)
        if total > self.limits.max_job_bytes:
            count = len(plan.replicas)
            detail = f"the {count} pods of the job would have {total} bytes in all"
            accepted = f"{self.limits.max_job_bytes} bytes or fewer: fewer replicas, or a smaller pod template"
            yield FieldError(pointer="/spec", code="JobTooLarge", detail=detail, accepted=accepted)


def _refuse_exemption(manifest: Manifest, stored: Manifest | None) -> None:
    """Only an administrator gives exemptions from the pod policy; others may keep what a job already has."""
    asked, had = allowed_controls(manifest), allowed_controls(stored) if stored else frozenset()
    if not asked - had:
        return
    problems = Problems()
    problems.add(
        pointer_to("/metadata/annotations", labels.POD_POLICY_ALLOW),
        "AdminOnly",
        "only the role admin may exempt a job from the pod policy",
        "leave it out, or ask an administrator to submit the job",
    )
    raise violation("the role does not allow to exempt a job from the pod policy", problems)


def generated_name(base: str, suffix: Suffix, name_max: int = DNS_LABEL_MAX) -> str:
    return base[: name_max - SUFFIX_LENGTH] + suffix()


def named(document: Manifest, suffix: Suffix, name_max: int = DNS_LABEL_MAX) -> tuple[Manifest, bool]:
    """Draw a name where only its beginning is given; whether that was so."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") is not None:
        return document, False
    base = metadata.get("generateName")
    if not isinstance(base, str) or not base:
        return document, False
    return {**document, "metadata": {**metadata, "name": generated_name(base, suffix, name_max)}}, True


def placed(document: Manifest, namespace: str) -> Manifest:
    """The path says where it goes; a manifest that says otherwise is a mistake worth telling."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return document
    given = metadata.get("namespace")
    if isinstance(given, str) and given != namespace:
        error = FieldError(
            pointer="/metadata/namespace",
            code="NamespaceMismatch",
            detail="the manifest names another namespace than the path",
            accepted="the namespace of the path, or none",
        )
        raise InvalidManifest("the manifest belongs to another namespace", errors=[error])
    return document
