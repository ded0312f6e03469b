"""The next step for a manifest of a kind that jobgate does not have, such as a batch/v1 Job or a ConfigMap."""

from collections.abc import Iterable
from typing import Final

from app.domain.errors import shorten
from app.domain.kinds.base import Kind
from app.domain.suggestions import nearest

# API groups of other job systems. Their kinds run containers, which a GenericJob can run too.
_JOB_GROUPS: Final = frozenset(
    {
        "batch",
        "batch.volcano.sh",
        "jobset.x-k8s.io",
        "kubeflow.org",
        "ray.io",
        "sparkoperator.k8s.io",
        "trainer.kubeflow.org",
    }
)
# The kinds of these groups whose names do not end with Job, and the kind of a single pod.
_OTHER_WORKLOADS: Final = frozenset({"JobSet", "RayCluster", "SparkApplication"})
_POD: Final = ("v1", "Pod")
_ANY_CONTAINER: Final = "a GenericJob runs any container: see docs/kinds/generic-job.md"
# The kinds that serve the same framework, with the names of their pages.
_SAME_FRAMEWORK: Final = {"MXJob": ("MxJob", "mx-job"), "PaddleJob": ("TrainingJob", "training-job")}


def next_step(api_version: object, kind: object, registered: Iterable[Kind]) -> str | None:
    """Return what the author of a manifest can do if it is of another system; None if it may just be misspelt."""
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    own = list(registered)
    group = group_of(api_version)
    if group in {group_of(version) for known in own for version in known.api_versions}:
        return None
    name = shorten(kind)
    if (api_version, kind) == _POD or (group in _JOB_GROUPS and (kind.endswith("Job") or kind in _OTHER_WORKLOADS)):
        also = ""
        if kind in _SAME_FRAMEWORK:
            same, page = _SAME_FRAMEWORK[kind]
            also = f"; {same} is for the same framework: see docs/kinds/{page}.md"
        return f"a {name} of {shorten(api_version)} is not one of the kinds here; {_ANY_CONTAINER}{also}"
    if nearest(kind, [known.name for known in own]):
        return None
    return f"a {name} is not one of the kinds here; apply it with kubectl, and post the job alone"


def group_of(api_version: object) -> str | None:
    """Return the API group, also if the version is missing. The core group has no name: the result is its version."""
    return api_version.partition("/")[0] if isinstance(api_version, str) else None
