"""The pod policy of an installation, and how templates are checked against it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from app.domain.errors import FieldError, Forbidden, Problems
from app.domain.pod_template.checked_values import CheckedValues, digest_of
from app.domain.policy.keys import ANNOTATIONS_CONTROL, LABELS_CONTROL, annotations, labels
from app.domain.policy.own import service_account
from app.domain.policy.table import SERVICE_ACCOUNT, Level, checks_of
from app.domain.policy.template import Check, DeclaredTemplate, PodTemplate


# No slots: cached_property stores its value in the __dict__ of the instance.
@dataclass(frozen=True, kw_only=True)
class PodPolicy:
    """The configuration of the pod policy.

    The controls of `allow` are not enforced. Pods may use the `service_accounts` and `default`; * stands for any.
    Templates may have `annotations` and `labels` that match these patterns, besides harmless ones.
    `user_namespaces` says that the cluster runs each pod with `hostUsers: false` in its own user namespace, so that
    such a pod may run as root. A cluster without this feature ignores the field and runs the pod with the users of the
    node, so by default the field lifts no control.
    """

    level: Level = Level.BASELINE
    allow: frozenset[str] = frozenset()
    service_accounts: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    user_namespaces: bool = False

    @cached_property
    def checks(self) -> dict[str, Check]:
        enforced = checks_of(self.level) | {
            ANNOTATIONS_CONTROL: annotations(self.annotations),
            LABELS_CONTROL: labels(self.labels),
            SERVICE_ACCOUNT: service_account(self.service_accounts),
        }
        return {name: check for name, check in enforced.items() if name not in self.allow}

    @cached_property
    def _compliant(self) -> CheckedValues:
        """The templates, each with its exempt controls, that do not violate this policy."""
        return CheckedValues()

    def violations(
        self, templates: Iterable[DeclaredTemplate], exempt: frozenset[str] = frozenset()
    ) -> Iterator[FieldError]:
        """Yield an error for each field that violates a control which is not exempt. No error is repeated."""
        found_before: set[FieldError] = set()
        for declared in templates:
            pod = PodTemplate(declared.template, user_namespaces=self.user_namespaces)
            for name, check in self.checks.items():
                if name in exempt:
                    continue
                for found in check(pod):
                    pointer = declared.locate(found.pointer)
                    error = FieldError(pointer=pointer, code=name, detail=found.detail, accepted=found.accepted)
                    if error not in found_before:
                        found_before.add(error)
                        yield error

    def refuse_violations(
        self,
        templates: Sequence[DeclaredTemplate],
        *,
        exempt: frozenset[str] = frozenset(),
        before: Sequence[DeclaredTemplate] = (),
    ) -> None:
        """Refuse templates that violate the policy where the stored templates, `before`, did not.

        Raises:
            Forbidden: the error has every new violation.
        """
        digests = [digest_of([declared.template, *sorted(exempt)]) for declared in templates]
        if all(digest in self._compliant for digest in digests):
            return
        found = list(self.violations(templates, exempt))
        if not found:
            for digest in digests:
                self._compliant.add(digest)
            return
        # Exemptions do not apply here: what the stored job already does, with or without one, blocks no edit of it.
        old = {(error.code, error.pointer) for error in self.violations(before)} if before else set()
        problems = Problems()
        problems.extend(error for error in found if (error.code, error.pointer) not in old)
        if problems:
            raise violation("the pod policy does not allow this", problems)


def violation(message: str, problems: Problems) -> Forbidden:
    return Forbidden(message, code="PodPolicy", errors=problems.errors)
