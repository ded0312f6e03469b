"""Warnings about fields of a valid manifest that do not have the effect that their author may expect."""

from collections.abc import Iterable, Iterator

from app.domain.plan import JobWarning
from app.domain.pod_template.reading import mapping
from app.domain.policy.template import DeclaredTemplate
from app.domain.vocabulary import WarningSource

# The only restart policy of pods that has the effect that a template states.
_KEPT = "Never"


def ignored_restart_policies(templates: Iterable[DeclaredTemplate]) -> Iterator[JobWarning]:
    """Yield a warning for each template that states a restart policy of the pod, which jobgate replaces by Never."""
    for declared in templates:
        policy = mapping(declared.template.get("spec")).get("restartPolicy")
        if policy not in (None, _KEPT):
            yield warning(
                declared.locate("/spec/restartPolicy"),
                f"the restartPolicy {policy} of the pod template has no effect: jobgate restarts replicas itself, with "
                "new pods whose restartPolicy is Never",
            )


def warning(pointer: str, message: str) -> JobWarning:
    return JobWarning(source=WarningSource.JOBGATE, pointer=pointer, message=message)
