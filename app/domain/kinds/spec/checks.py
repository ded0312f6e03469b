"""Reads a posted spec and reports all its errors at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from app.domain.errors import FieldError, Problems
from app.domain.kinds.spec.model import SpecModel, read_in_part, read_spec

Location: TypeAlias = tuple[str | int, ...]
"""The steps from a spec to one of its fields."""
_Spec = TypeVar("_Spec", bound=SpecModel)


def _keep(spec: _Spec) -> _Spec:
    return spec


def _no_checks(_spec: Any, _problems: Problems) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecChecks(Generic[_Spec]):
    """Checks of a kind that go beyond the types of its spec model, such as rules between two fields.

    `complete` fills in defaults that the model leaves open. `check` reports the errors of a completed spec.
    `is_consequence` says whether an error may exist only because fields at these places were left out.
    `check_unreadable` checks what it can of a spec that cannot be read even in part.
    """

    check: Callable[[_Spec, Problems], None]
    is_consequence: Callable[[FieldError, Sequence[Location]], bool]
    complete: Callable[[_Spec], _Spec] = _keep
    check_unreadable: Callable[[Any, Problems], None] = _no_checks


def read_and_check(model: type[_Spec], value: Any, problems: Problems, checks: SpecChecks[_Spec]) -> _Spec | None:
    """Return the value of `/spec` as a checked model, or None if its shape is wrong.

    A spec of the wrong shape is checked without the fields that cannot be read, so that one answer has all its errors.
    """
    spec = read_spec(model, value, "/spec", problems)
    if spec is not None:
        spec = checks.complete(spec)
        checks.check(spec, problems)
        return spec
    if problems.full:
        return None
    part = read_in_part(model, value)
    if part is None:
        checks.check_unreadable(value, problems)
        return None
    readable, left_out = part
    found = Problems()
    checks.check(checks.complete(readable), found)
    # An error that only the missing fields cause would mislead the user, who gave them.
    problems.extend(error for error in found.errors if not checks.is_consequence(error, left_out))
    return None
