"""A driver's refusals: upstream's sentences, each under a code of its own."""

from app.domain.errors import FieldError, InvalidManifest


def refusal(code: str, detail: str, pointer: str = "", accepted: str | None = None) -> InvalidManifest:
    """The error for one thing that is wrong; `pointer` is into the manifest, where it is the user's."""
    errors = [FieldError(pointer=pointer, code=code, detail=detail, accepted=accepted)] if pointer else []
    return InvalidManifest(detail, code=code, errors=errors)
