"""Errors about SampleSets and SampleJobs with upstream's messages, each with a code of its own."""

from app.domain.errors import FieldError, InvalidManifest


def refusal(code: str, detail: str, pointer: str = "", accepted: str | None = None) -> InvalidManifest:
    """Return the error for one problem; `pointer` locates it in the manifest if the manifest caused it."""
    errors = [FieldError(pointer=pointer, code=code, detail=detail, accepted=accepted)] if pointer else []
    return InvalidManifest(detail, code=code, errors=errors)
