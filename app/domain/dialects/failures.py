"""Which replicas ended a job, and how, in a sentence for its native status."""

from collections.abc import Mapping
from typing import Final

from app.domain.errors import shorten
from app.domain.status.records import Attempt
from app.domain.vocabulary import Outcome

_NAMED: Final = 5


def tell_failures(failed: Mapping[str, Attempt]) -> str:
    """The first few of these attempts under the names of their pods, and how many more there are."""
    told = [_failure(name, attempt) for name, attempt in list(failed.items())[:_NAMED]]
    return "; ".join(told + ([f"and {len(failed) - _NAMED} more"] if len(failed) > _NAMED else []))


def _failure(name: str, attempt: Attempt) -> str:
    """Of a message, which may be the end of a log, the last line says it."""
    how = "was taken away" if attempt.outcome is Outcome.DISRUPTED else "failed"
    code = [] if attempt.exit_code is None else [f"exit code {attempt.exit_code}"]
    facts = ", ".join(code + ([attempt.reason] if attempt.reason else []))
    said = (attempt.message or "").strip().splitlines()[-1:]
    return ": ".join([f"{name} {how}" + (f" ({facts})" if facts else ""), *map(shorten, said)])
