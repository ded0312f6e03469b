"""Text of errors: what was wrong, where, and what is accepted. Pure; an error fits on one screen."""

from typing import Final

from jobgate.cli.manifests import Document
from jobgate.cli.tables import shortened
from jobgate.client.errors import JobgateError, ProblemError, UnauthenticatedError, UnreachableError
from jobgate.client.types import FieldError

_FAULTS: Final = 8  # shown at once; each has up to three lines
_TEXT: Final = 300  # characters of one sentence


def fault_text(error: JobgateError, document: Document | None = None, *, about: str = "") -> str:
    """Return the lines of an error about an object. The document is the manifest that the gateway refused."""
    if not isinstance(error, ProblemError):
        return f"jobgate: {error}" + (_HINT_SERVER if isinstance(error, UnreachableError) else "")
    lines = [f"jobgate: {about and f'{about}: '}{shortened(error.problem.detail, _TEXT)} ({error.status} {error.code})"]
    for fault in error.errors[:_FAULTS]:
        lines += _fault_lines(fault, document)
    if len(error.errors) > _FAULTS:
        lines.append(f"  … and {len(error.errors) - _FAULTS} more; -o json shows all of them")
    if isinstance(error, UnauthenticatedError):
        lines.append("  give a token: set JOBGATE_TOKEN, or run `jobgate login`")
    if error.code == "NotFound":
        lines += getattr(error, "__notes__", ())
    return "\n".join(lines)


_HINT_SERVER: Final = "\n  give its address with --server, JOBGATE_SERVER or `jobgate login`"


def _fault_lines(fault: FieldError, document: Document | None) -> list[str]:
    place = fault.pointer or "/"
    line = document.line_of(fault.pointer) if document else None
    if document and line:
        place = f"{document.source}:{line}: {place}"
    lines = [f"  {place}: {shortened(fault.detail, _TEXT)}"]
    if fault.accepted:
        lines.append(f"    accepted: {shortened(fault.accepted, _TEXT)}")
    return lines
