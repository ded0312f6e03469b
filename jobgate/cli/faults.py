"""Text of errors: what was wrong, where, and what is accepted. Pure; an error fits on one screen."""

from typing import Final

from jobgate.cli.manifests.documents import Document
from jobgate.cli.rendering.tables import shorten
from jobgate.client.errors import (
    CutOffError,
    JobgateError,
    ProblemError,
    ProxyError,
    UnauthenticatedError,
    UnreachableError,
)
from jobgate.client.types import FieldError

_FAULTS: Final = 8  # shown at once; each has up to three lines
_TEXT: Final = 2400  # characters of the first sentence and of those of the faults
_UNKNOWN_AUTHORITY: Final = "CERTIFICATE_VERIFY_FAILED"  # as OpenSSL writes it


def fault_text(error: JobgateError, document: Document | None = None, *, about: str = "") -> str:
    """Return the lines of an error about an object. The document is the manifest that the gateway refused."""
    if not isinstance(error, ProblemError):
        return f"jobgate: {error}{_hint(error)}"
    room = _TEXT // (1 + min(_FAULTS, len(error.errors)))
    lines = [f"jobgate: {about and f'{about}: '}{shorten(error.problem.detail, room)} ({error.status} {error.code})"]
    for fault in error.errors[:_FAULTS]:
        lines += _fault_lines(fault, document, room)
    if len(error.errors) > _FAULTS:
        lines.append(f"  … and {len(error.errors) - _FAULTS} more; -o json shows all of them")
    if document and (hint := document.hint([fault.pointer for fault in error.errors])):
        lines.append(f"  {hint}")
    if isinstance(error, UnauthenticatedError):
        lines.append("  give a token: set JOBGATE_TOKEN, or run `jobgate login`")
    if error.code == "NotFound":
        lines += getattr(error, "__notes__", ())
    return "\n".join(lines)


def _hint(error: JobgateError) -> str:
    """Return a line that says what the user can do about a gateway that does not answer."""
    if isinstance(error, ProxyError):
        return "\n  unset the variable, or add the host of the gateway to NO_PROXY"
    if _UNKNOWN_AUTHORITY in str(error):
        return "\n  save the certificate authority of the gateway with `jobgate login --ca-file FILE`"
    if isinstance(error, UnreachableError) and not isinstance(error, CutOffError):
        return "\n  give its address with --server, JOBGATE_SERVER or `jobgate login`"
    return ""


def _fault_lines(fault: FieldError, document: Document | None, room: int) -> list[str]:
    place = fault.pointer or "/"
    line = document.line_of(fault.pointer) if document else None
    if document and line:
        place = f"{document.source}:{line}: {place}"
    lines = [f"  {place}: {shorten(fault.detail, room)}"]
    if fault.accepted:
        lines.append(f"    accepted: {shorten(fault.accepted, room)}")
    return lines
