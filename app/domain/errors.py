"""The errors that all layers share. They do not depend on HTTP, the cluster or the database."""

# ruff: noqa: N818 - the errors are answers to clients and no faults of the program, so their names lack the suffix Error

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

# A document may have twenty thousand errors. The limit keeps the answer small.
MAX_ERRORS = 20
# A detail quotes text of the client, such as a misspelt field, which may have 1 MiB.
_MAX_QUOTED = 80
# A pointer to a valid key must not be cut. The longest key that Kubernetes allows has 317 characters (a label's).
_MAX_STEP = 320


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One error of a document: its place, a stable code, what is wrong, and what is accepted."""

    pointer: str
    code: str
    detail: str
    accepted: str | None = None


def pointer_to(base: str, *steps: str | int) -> str:
    """Return a JSON pointer (RFC 6901) extended by steps: "/spec" with "a/b" and 0 becomes "/spec/a~1b/0"."""
    for step in steps:
        # Pointers are built before a check fails, mostly from names of fields, which need no change.
        if isinstance(step, str) and not (step.isalnum() and len(step) <= _MAX_STEP):
            step = shorten(step, _MAX_STEP).replace("~", "~0").replace("/", "~1")  # noqa: PLW2901 - hot path
        base = f"{base}/{step}"
    return base


def shorten(text: str, limit: int = _MAX_QUOTED) -> str:
    """Return text of a client in a form for messages: shortened, and without unprintable characters."""
    if len(text) <= limit and text.isprintable():
        return text
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: limit + 1])
    return printable if len(printable) <= limit else printable[: limit - 1] + "…"


def shorten_list(words: Sequence[str], most: int, count: int | None = None) -> str:
    """Return the first words of a list and how many more it has. `count` is their number if not all are given."""
    more = (len(words) if count is None else count) - min(most, len(words))
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")


class Problems:
    """Collects the errors of a document, up to MAX_ERRORS, so that one answer reports them all."""

    __slots__ = ("_errors", "_unlisted")

    def __init__(self) -> None:
        self._errors: list[FieldError] = []
        self._unlisted = 0

    def add(self, pointer: str, code: str, detail: str, accepted: str | None = None) -> None:
        if len(self._errors) >= MAX_ERRORS:
            # Errors beyond the limit are only counted, so that the last entry can say how many there are.
            self._unlisted += 1
            return
        self._errors.append(FieldError(pointer=pointer, code=code, detail=detail, accepted=accepted))

    def extend(self, errors: Iterable[FieldError]) -> None:
        for error in errors:
            self.add(error.pointer, error.code, error.detail, error.accepted)

    def absorb(self, found: "Problems", change: Callable[[FieldError], FieldError]) -> None:
        """Add the errors of another collection, each passed through `change`, and its number of unlisted errors."""
        self.extend(map(change, found._errors))  # noqa: SLF001  the same class
        self._unlisted += found._unlisted  # noqa: SLF001

    def __bool__(self) -> bool:
        return bool(self._errors)

    def __len__(self) -> int:
        return len(self._errors) + self._unlisted

    @property
    def full(self) -> bool:
        """Whether a further error would only be counted, so that a long loop of checks may stop."""
        return len(self._errors) >= MAX_ERRORS

    @property
    def errors(self) -> tuple[FieldError, ...]:
        """At most MAX_ERRORS errors. If there are more, the last one says how many are not listed."""
        if not self._unlisted:
            return tuple(self._errors)
        # The entry with the number takes the place of the last listed error, which is therefore hidden too.
        hidden = self._unlisted + 1
        more = FieldError(pointer="", code="TooManyErrors", detail=f"and {hidden} more errors are not listed")
        return (*self._errors[: MAX_ERRORS - 1], more)

    def raise_if_any(self, message: str = "the manifest is not valid") -> None:
        if self._errors:
            raise InvalidManifest(message, errors=self.errors)


class DomainError(Exception):
    """The base class of all errors: a stable code, a message, and errors of single fields."""

    default_code: ClassVar[str] = "Error"

    def __init__(self, message: str, *, code: str | None = None, errors: Iterable[FieldError] = ()) -> None:
        self.message = message
        self.code = code or self.default_code
        self.errors = tuple(errors)
        where = "; ".join(f"{error.pointer or '(document)'}: {error.detail}" for error in self.errors)
        super().__init__(f"{message}: {where}" if where else message)


@contextmanager
def moved_pointers(before: str, after: str) -> Iterator[None]:
    """Let errors at and below the field `before` point to `after`, which is where the client has given its value."""
    try:
        yield
    except DomainError as error:
        error.errors = tuple(
            replace(found, pointer=after + found.pointer.removeprefix(before))
            if f"{found.pointer}/".startswith(f"{before}/")
            else found
            for found in error.errors
        )
        raise


class MalformedDocument(DomainError):
    """The body is not valid JSON or YAML, or exceeds a limit of the decoder."""

    default_code = "MalformedDocument"


class InvalidManifest(DomainError):
    """The document can be decoded, but violates the rules of its kind."""

    default_code = "InvalidManifest"


def invalid_manifest(code: str, detail: str, pointer: str = "", accepted: str | None = None) -> InvalidManifest:
    """Return the error for one problem. `pointer` is empty if no field of the manifest has caused it."""
    errors = [FieldError(pointer=pointer, code=code, detail=detail, accepted=accepted)] if pointer else []
    return InvalidManifest(detail, code=code, errors=errors)


class NotFound(DomainError):
    """The resource does not exist, or the caller may not see it."""

    default_code = "NotFound"


class Purged(DomainError):
    """The object existed in this namespace, and its record was deleted when its time was over."""

    default_code = "Purged"

    def __init__(self, what: str, namespace: str) -> None:
        super().__init__(f"the record of this {what} was deleted, because the time for which it is kept is over")
        self.namespace = namespace


def no_such(what: str) -> NotFound:
    """Return the error for a missing object, `what` names its resource.

    The error is the same for an object that the caller may not see, so that it does not reveal that the object exists.
    """
    return NotFound(f"there is no such {what}")


class Conflict(DomainError):
    """The request conflicts with the present state: a name in use, or an action that the phase does not allow."""

    default_code = "Conflict"


class PreconditionFailed(DomainError):
    """The precondition names a version that is no longer current."""

    default_code = "PreconditionFailed"


class PreconditionRequired(DomainError):
    """The request needs a precondition that names a version."""

    default_code = "PreconditionRequired"


class Unauthenticated(DomainError):
    """The request has no valid credential."""

    default_code = "Unauthenticated"


class Forbidden(DomainError):
    """The caller does not have the right to do this."""

    default_code = "Forbidden"


class TooLarge(DomainError):
    """A body, or an object that would be rendered from it, exceeds a limit of size."""

    default_code = "TooLarge"


class UnsupportedMediaType(DomainError):
    """The server cannot decode the media type of the body."""

    default_code = "UnsupportedMediaType"


class TooManyRequests(DomainError):
    """The caller exceeds a rate limit, or its namespace exceeds a quota."""

    default_code = "TooManyRequests"


class Unavailable(DomainError):
    """A service that the request needs is unreachable. The client may repeat the request."""

    default_code = "Unavailable"
