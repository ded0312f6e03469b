"""Which objects of a job the cluster checks in a dry run, and what its answers mean for the job. Pure.

    objects of the plan ─▶ one of each sort ─▶ (server-side dry run of their creation) ─▶ refusals, warnings ─▶ findings

The replicas of a task differ only in names, ranks and values that the cluster does not check, so one replica of each
task is checked.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from app.domain.errors import pointer_to
from app.domain.kinds.job_kind import Accepted
from app.domain.kubernetes import labels
from app.domain.manifests.rendered import sample_objects
from app.domain.plan import JobPlan, Manifest
from app.domain.policy.template import DeclaredTemplate
from app.domain.status.log_lines import one_line
from app.domain.status.observed import RefusalVerdict
from app.domain.status.refusal_messages import refusal_message
from app.domain.status.refusals import judge
from app.domain.vocabulary import PendingCode, Reason

# The steps of a field path of Kubernetes, such as spec.containers[0].image or metadata.labels[a/b].
_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
# Refusals that do not concern the object. Their messages can contain addresses and accounts of the platform, so the
# client receives these texts, and the log has the message.
_NOT_CHECKED: Final[Mapping[str, str]] = {
    PendingCode.CLUSTER_DENIED: "the cluster does not permit jobgate to create such objects",
    PendingCode.CLUSTER_ERROR: "the cluster reports an internal error",
    PendingCode.CLUSTER_THROTTLED: "the cluster receives too many requests",
}
# The other objects of the job would be refused for the same reason.
_OF_NAMESPACE: Final = frozenset({PendingCode.NAMESPACE_NOT_FOUND, Reason.NAMESPACE_TERMINATING})
# Findings of one object. A webhook can return any number of causes and warnings, and texts of any length.
_MOST_FINDINGS: Final = 20


class FindingEffect(StrEnum):
    """What a finding means for a job that is submitted unchanged."""

    FAILS = "Fails"
    WAITS = "Waits"
    WARNS = "Warns"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFinding:
    """A refusal or a warning of the cluster about one object of a job.

    `pointer` leads to the field of the job's manifest that the object was made from, as far as it is known.
    """

    object: str
    task: str | None
    pointer: str
    effect: FindingEffect
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCheck:
    """The findings of the cluster. If it has not checked every object, `detail` says why."""

    is_complete: bool
    detail: str = ""
    findings: tuple[ClusterFinding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The cluster's refusal of one object. `causes` are triples of reason, message and field."""

    status: int
    reason: str
    message: str
    causes: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedObject:
    """An object that the cluster checks, and the pod template that it was made from, if any."""

    manifest: Manifest
    template: DeclaredTemplate | None

    @property
    def name(self) -> str:
        return f"{self.manifest['kind']} {self.manifest['metadata']['name']}"

    @property
    def task(self) -> str | None:
        found = self.manifest["metadata"].get("labels", {}).get(labels.TASK)
        return None if found is None else str(found)


def objects_to_check(plan: JobPlan, accepted: Accepted[Any]) -> Iterator[CheckedObject]:
    """Yield the shared objects of a job, and the objects of one replica of each task that has any."""
    templates = accepted.kind.pod_templates(accepted.manifest, accepted)
    # Templates are in the order of the tasks. A TrainingJob also has templates of roles without a task.
    places = iter(templates)
    for manifest in sample_objects(plan, 0):
        template = None
        if manifest["kind"] == "Pod":
            template = next((declared for declared in places if _names(declared.template) == _names(manifest)), None)
        yield CheckedObject(manifest=manifest, template=template)


def reason_not_checked(answer: Answer) -> str:
    """Return why the cluster has not checked the object; empty if the refusal concerns the object."""
    return "" if _is_harmless(answer) else _NOT_CHECKED.get(_judge(answer)[1], "")


def concerns_namespace(answer: Answer) -> bool:
    """Return whether the cluster refuses every object of the job for the same reason."""
    return _judge(answer)[1] in _OF_NAMESPACE


def refusals(checked: CheckedObject, answer: Answer) -> list[ClusterFinding]:
    """Return the findings of a refusal: one for each field that it names, otherwise one for the whole object."""
    if _is_harmless(answer):
        return []
    verdict, code = _judge(answer)
    effect = FindingEffect.FAILS if verdict is RefusalVerdict.FAIL else FindingEffect.WAITS
    namespace = checked.manifest["metadata"]["namespace"]
    whole = refusal_message(code, answer.status, answer.message, namespace)
    fields = [(field, f"{field}: {message}") for _, message, field in answer.causes if field]
    # A namespace that is being deleted has the cause metadata.namespace, which is no field of the object to correct.
    places = fields if fields and code not in _OF_NAMESPACE else [("", whole)]
    return [_finding(checked, field, effect, code, detail) for field, detail in places[:_MOST_FINDINGS]]


def warnings(checked: CheckedObject, texts: Sequence[str]) -> list[ClusterFinding]:
    """Return the findings of the warnings with which the cluster would create the object."""
    distinct = list(dict.fromkeys(texts))[:_MOST_FINDINGS]
    return [_finding(checked, _field_in(text), FindingEffect.WARNS, "Warning", text) for text in distinct]


def _finding(checked: CheckedObject, field: str, effect: FindingEffect, code: str, detail: str) -> ClusterFinding:
    pointer = _pointer(checked.template, field)
    return ClusterFinding(
        object=checked.name, task=checked.task, pointer=pointer, effect=effect, code=code, detail=one_line(detail)
    )


def _judge(answer: Answer) -> tuple[RefusalVerdict, str]:
    causes = [(reason, message) for reason, message, _ in answer.causes]
    return judge(answer.status, answer.reason, answer.message, causes, seen_before=False)


def _is_harmless(answer: Answer) -> bool:
    """Return whether the refusal would not affect the job.

    Either an object of an earlier job has the name, and the controller waits until it is deleted; the cluster reports
    this only after all its checks. Or the cluster lacks an optional API, such as that of PodGroups.
    """
    return answer.reason == "AlreadyExists" or (
        answer.status == 404 and "could not find the requested resource" in answer.message
    )


def _pointer(template: DeclaredTemplate | None, field: str) -> str:
    """Return the pointer to the deepest part of the field that the template has: the rest is jobgate's own."""
    if template is None:
        return ""
    value: Any = template.template
    pointer = ""
    for match in _STEP.finditer(field):
        step = match[1] or match[2]
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            break
        pointer = pointer_to(pointer, step)
    return template.locate(pointer)


def _field_in(warning: str) -> str:
    """Return the field path at the beginning of a warning, such as `spec.x: deprecated`; empty if there is none."""
    field, colon, _ = warning.partition(": ")
    return field if colon and re.fullmatch(r"(?:spec|metadata)[\w.\[\]/-]*", field) else ""


def _names(owner: Manifest) -> list[str]:
    """Return the names of the containers of a pod or template."""
    containers: Iterable[Any] = (owner.get("spec") or {}).get("containers") or ()
    return [str(container.get("name")) for container in containers if isinstance(container, dict)]
