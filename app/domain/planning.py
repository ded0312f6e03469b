"""Turns posted documents into manifests that can be stored, and stored manifests into plans.

    document ─▶ kind ─▶ name and namespace ─▶ kind.accept ─▶ plan ─▶ size of the rendered objects

The API and the controller of one process share a `Planner`, and with it the typed specs of the jobs that they use.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec

from app.base.caches import BoundedCache
from app.domain.errors import FieldError, InvalidManifest, Problems, moved_pointers, pointer_to, shorten
from app.domain.kinds import registry
from app.domain.kinds.base import JOBS
from app.domain.kinds.envelope import allowed_controls
from app.domain.kinds.gangs import plan_gang
from app.domain.kinds.job_kind import Accepted, Given, Limits, Site
from app.domain.kinds.posted_metadata import NAME, Suffix, add_name, name_pointer, require_namespace
from app.domain.kinds.registry import refuse_wrong_route
from app.domain.kubernetes import labels
from app.domain.manifests.gangs import with_gang_apis
from app.domain.manifests.rendered import pod_bytes
from app.domain.plan import JobIdentity, JobPlan, Manifest
from app.domain.pod_template.metadata import container_names
from app.domain.policy import PodPolicy
from app.domain.policy.pod_policy import violation
from app.domain.policy.template import DeclaredTemplate
from app.domain.queueing.priorities import requested_priority
from app.domain.queueing.requests import check_queue, queue_of

# Typed specs take about twelve times as much memory as their JSON, so this bounds them at about 50 MiB.
_MAX_SPEC_BYTES: Final = 4 * 1024 * 1024
_ENTRY_BYTES: Final = 1024  # the overhead of a spec besides its JSON

SpecKey: TypeAlias = tuple[UUID, int]
"""A job and its generation. Only an edit that increases the generation changes the spec."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A manifest as it would be stored. `generated` says that another name may be drawn if this one is taken."""

    accepted: Accepted[Any]
    generated: bool

    @property
    def manifest(self) -> Manifest:
        return self.accepted.manifest

    @property
    def name(self) -> str:
        return self.accepted.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Accepts and plans manifests with the configuration of one installation."""

    installation: str
    limits: Limits = field(default_factory=Limits)
    site: Site = field(default_factory=Site)
    policy: PodPolicy = field(default_factory=PodPolicy)
    requires_queue: bool = False
    _specs: BoundedCache[SpecKey, Accepted[Any]] = field(
        default_factory=partial(BoundedCache, _MAX_SPEC_BYTES), init=False
    )

    def draft(
        self,
        document: Manifest,
        namespace: str,
        suffix: Suffix,
        *,
        stored: Manifest | None = None,
        administers: bool = False,
    ) -> Draft:
        """Return the manifest with its defaults, name and namespace. `stored` is the manifest that it replaces.

        Raises:
            InvalidManifest: the document is not valid; the error has every problem of it.
            Forbidden: the document violates the pod policy, or requests an exemption that only an administrator may
                grant.
        """
        refuse_wrong_route(document, JOBS, namespace)
        kind = registry.find(document.get("apiVersion"), document.get("kind"))
        called, generated = add_name(document, suffix)
        given = Given(suffix=suffix, stored=stored)
        with moved_pointers(NAME, name_pointer(generated=generated)):
            accepted = kind.accept(require_namespace(called, namespace), self.limits, given)
        manifest = accepted.manifest
        # The stored manifest has its final name: a retry must not generate another one.
        manifest["metadata"].pop("generateName", None)
        manifest["metadata"]["namespace"] = namespace
        if not administers:
            _refuse_exemption(manifest, stored)
        templates = kind.pod_templates(manifest if stored else document, accepted)
        _check_main_container(manifest, templates)
        # An edit is checked against the stored templates too, so that a stricter policy does not block edits of running
        # jobs.
        self.policy.refuse_violations(
            templates,
            exempt=allowed_controls(manifest),
            before=kind.pod_templates(stored, kind.read(stored)) if stored else (),
        )
        return Draft(accepted=accepted, generated=generated)

    def read(self, manifest: Manifest, uid: UUID, generation: int) -> Accepted[Any]:
        """Return the typed form of a stored manifest. The spec is validated once for each generation."""
        known = self._specs.get((uid, generation))
        # A database that was restored from a backup may reach the same generation with another spec.
        if known is not None and known.manifest is manifest:
            return known
        if known is not None and known.manifest.get("spec") == manifest.get("spec"):
            # An edit of the metadata does not increase the generation, so the cached metadata may be old.
            return replace(known, manifest=manifest)
        accepted = registry.find(manifest["apiVersion"], manifest["kind"]).read(manifest)
        self._specs.put((uid, generation), accepted, stored_bytes(manifest))
        return accepted

    def plan(
        self,
        accepted: Accepted[Any],
        uid: str,
        *,
        generation: int = 1,
        resumed: bool = False,
        credential: str = "",
        gang_apis: Collection[str] | None = None,
    ) -> JobPlan:
        """Return the plan of an accepted manifest. A plan for a dry run needs no credential.

        `gang_apis` are the versions of APIs of PodGroups that the cluster serves; None if they are not known.
        """
        manifest = accepted.manifest
        identity = JobIdentity(
            uid=uid,
            kind=manifest["kind"],
            api_version=manifest["apiVersion"],
            namespace=manifest["metadata"]["namespace"],
            name=accepted.name,
            generation=generation,
            installation=self.installation,
            credential=credential,
        )
        plan = accepted.kind.plan(accepted, identity, resumed=resumed, site=self.site)
        main = _main_container(manifest)
        plan = replace(
            plan,
            gang=plan_gang(plan, manifest, self.site),
            queue=queue_of(manifest) or plan.queue,
            priority=requested_priority(manifest, plan),
            main_container=plan.main_container if main is None else main,
        )
        return with_gang_apis(plan, gang_apis)

    def checked_plan(self, accepted: Accepted[Any], uid: str, before: JobPlan | None = None) -> JobPlan:
        """Return the plan of a new manifest, and check that its objects are within the limits.

        `before` is the plan of the stored manifest that an edit replaces. A job that was accepted without a queue needs
        none. Only the last replica of each task is rendered: its rank has the most digits, so it is the largest of the
        task.

        Raises:
            InvalidManifest: one of its pods is too large, or all pods together are, or its queue is not valid.
        """
        plan = self.plan(accepted, uid)
        check_queue(plan, required=self.requires_queue and (before is None or before.queue is not None))
        sizes = pod_bytes(plan)
        errors = [*self._too_large(plan, sizes)]
        if errors:
            raise InvalidManifest("the manifest renders to objects that no cluster accepts", errors=errors)
        return plan

    def _too_large(self, plan: JobPlan, sizes: Mapping[str, int]) -> Iterator[FieldError]:
        largest, limit = max(sizes.values(), default=0), self.limits.max_rendered_pod_bytes
        if largest > limit:
            detail = f"a pod made from this would have {largest} bytes"
            yield FieldError(pointer="/spec", code="TooLarge", detail=detail, accepted=f"{limit} bytes or fewer")
        # The limit bounds the memory that the pods take in the API server and in the mirror.
        total = sum(sizes[task.name] * task.size for task in plan.tasks if task.size)
        if total > self.limits.max_job_bytes:
            count = plan.size
            detail = f"the {count} pods of the job would have {total} bytes in all"
            accepted = f"{self.limits.max_job_bytes} bytes or fewer: fewer replicas, or a smaller pod template"
            yield FieldError(pointer="/spec", code="JobTooLarge", detail=detail, accepted=accepted)


def _main_container(manifest: Manifest) -> str | None:
    """Return the main container of a job that its annotation names; None if it names none."""
    named: str | None = (manifest["metadata"].get("annotations") or {}).get(labels.MAIN_CONTAINER)
    return named


def _check_main_container(manifest: Manifest, templates: Sequence[DeclaredTemplate]) -> None:
    """Raise InvalidManifest if the main container of the job is a container of none of its pods.

    The other containers of a pod may come from webhooks, so their names are not known.
    """
    named = _main_container(manifest)
    if named is None:
        return
    known = list(dict.fromkeys(name for declared in templates for name in container_names(declared.template)))
    if named in known:
        return
    problems = Problems()
    problems.add(
        pointer_to("/metadata/annotations", labels.MAIN_CONTAINER),
        "UnknownContainer",
        f'no pod of the job has a container "{shorten(named)}" beside init containers',
        f"one of {', '.join(map(shorten, known))}",
    )
    problems.raise_if_any("the main container is not valid")


def _refuse_exemption(manifest: Manifest, stored: Manifest | None) -> None:
    """Raise Forbidden for an exemption from the pod policy that the stored manifest does not have.

    Only an administrator may give exemptions; others may keep those of a stored job.
    """
    requested, granted = allowed_controls(manifest), allowed_controls(stored) if stored else frozenset()
    if requested <= granted:
        return
    problems = Problems()
    problems.add(
        pointer_to("/metadata/annotations", labels.POD_POLICY_ALLOW),
        "AdminOnly",
        "only an admin of all namespaces may exempt a job from the pod policy",
        "leave it out, or ask an admin of all namespaces to submit the job",
    )
    raise violation("the caller cannot exempt a job from the pod policy", problems)


def stored_bytes(manifest: Manifest) -> int:
    """Return the size in bytes with which a cache counts a value that it derives from this manifest."""
    return _ENTRY_BYTES + len(msgspec.json.encode(manifest))
