"""What can be wrong, in words every layer shares: no HTTP status here, no transport, no storage."""

# ruff: noqa: N818 - a refusal is named for what it says; nothing here is a fault of the program

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

# A refused document may be wrong in twenty thousand places; the answer to it stays small.
MAX_ERRORS = 20
# Words of the client are quoted in details (a misspelt field); a 1 MiB key is not worth quoting.
_MAX_QUOTED = 80
# A pointer must stay true: the longest key that Kubernetes allows has 317 characters (prefix/name of a label).
_MAX_STEP = 320


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One thing wrong at one place: where, a stable code, what was wrong and what would be accepted."""

    pointer: str
    code: str
    detail: str
    accepted: str | None = None


def pointer_to(base: str, *steps: str | int) -> str:
    """Extend an RFC 6901 pointer: "/spec" with the steps "a/b", 0 is "/spec/a~1b/0"."""
    for step in steps:
        if isinstance(step, str):
            step = shorten(step, _MAX_STEP).replace("~", "~0").replace("/", "~1")  # noqa: PLW2901 - hot path
        base = f"{base}/{step}"
    return base


def shorten(text: str, limit: int = _MAX_QUOTED) -> str:
    """Quote text of the client within bounds, and so that it can always be encoded again."""
    if len(text) <= limit and text.isprintable():
        return text
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: limit + 1])
    return printable if len(printable) <= limit else printable[: limit - 1] + "…"


class Problems:
    """Collects errors so that a client learns of all of them at once, up to a bound."""

    __slots__ = ("_errors", "_limit", "_unlisted")

    def __init__(self, limit: int = MAX_ERRORS) -> None:
        self._limit = limit
        self._errors: list[FieldError] = []
        self._unlisted = 0

    def add(self, pointer: str, code: str, detail: str, accepted: str | None = None) -> None:
        if len(self._errors) >= self._limit:
            self._unlisted += 1
            return
        self._errors.append(FieldError(pointer=pointer, code=code, detail=detail, accepted=accepted))

    def extend(self, errors: Iterable[FieldError]) -> None:
        for error in errors:
            self.add(error.pointer, error.code, error.detail, error.accepted)

    def absorb(self, found: "Problems", change: Callable[[FieldError], FieldError]) -> None:
        """Add the errors of another collection, each changed by `change`; those that it only counted stay counted."""
        self.extend(map(change, found._errors))  # noqa: SLF001  the same class
        self._unlisted += found._unlisted  # noqa: SLF001

    def __bool__(self) -> bool:
        return bool(self._errors)

    def __len__(self) -> int:
        return len(self._errors) + self._unlisted

    @property
    def full(self) -> bool:
        """Whether another error would only be counted: a long loop of checks may stop."""
        return len(self._errors) >= self._limit

    @property
    def errors(self) -> tuple[FieldError, ...]:
        """At most `limit` entries; when there were more, the last one says how many are not shown."""
        if not self._unlisted:
            return tuple(self._errors)
        hidden = self._unlisted + 1
        more = FieldError(pointer="", code="TooManyErrors", detail=f"and {hidden} more errors are not listed")
        return (*self._errors[: self._limit - 1], more)

    def raise_if_any(self, message: str = "the manifest is not valid") -> None:
        if self._errors:
            raise InvalidManifest(message, errors=self.errors)


class DomainError(Exception):
    """The base of every refusal: a stable code, a sentence, and the fields concerned, if any."""

    default_code: ClassVar[str] = "Error"

    def __init__(self, message: str, *, code: str | None = None, errors: Iterable[FieldError] = ()) -> None:
        self.message = message
        self.code = code or self.default_code
        self.errors = tuple(errors)
        where = "; ".join(f"{error.pointer or '(document)'}: {error.detail}" for error in self.errors)
        super().__init__(f"{message}: {where}" if where else message)


class MalformedDocument(DomainError):
    """The bytes are not a document that we read: not JSON, not the YAML we accept, or over a limit."""

    default_code = "MalformedDocument"


class InvalidManifest(DomainError):
    """The document is readable, and what it says is not acceptable."""

    default_code = "InvalidManifest"


class NotFound(DomainError):
    """There is no such thing, or none that the caller may know of."""

    default_code = "NotFound"


class Gone(DomainError):
    """It existed, and is past its retention."""

    default_code = "Gone"


class Conflict(DomainError):
    """What is asked contradicts what is: a name in use, an action that the phase does not allow."""

    default_code = "Conflict"


class PreconditionFailed(DomainError):
    """The caller decided on a version that is no longer the current one."""

    default_code = "PreconditionFailed"


class PreconditionRequired(DomainError):
    """The caller must say which version it decided on."""

    default_code = "PreconditionRequired"


class Unauthenticated(DomainError):
    """The caller is nobody that we know."""

    default_code = "Unauthenticated"


class Forbidden(DomainError):
    """The caller is known and may not do this."""

    default_code = "Forbidden"


class TooLarge(DomainError):
    """A limit of size was exceeded: a body, or an object that would be rendered from it."""

    default_code = "TooLarge"


class UnsupportedMediaType(DomainError):
    """The body comes in a format that is not read here."""

    default_code = "UnsupportedMediaType"


class TooManyRequests(DomainError):
    """The caller must slow down, or its namespace is at its quota."""

    default_code = "TooManyRequests"


class Unavailable(DomainError):
    """Something that this request needs cannot be reached now; it may be repeated."""

    default_code = "Unavailable"
