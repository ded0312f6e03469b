"""The values, limits and error messages that the JSON and YAML decoders share."""

import re
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from app.domain.errors import FieldError, MalformedDocument, Problems

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

# The longest float that a program prints has 24 characters. Converting a very long number would take quadratic time.
MAX_NUMBER_LENGTH = 64

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingLimits:
    """Limits on the shape of a document: keys of all objects together, all values together, nesting, documents.

    `max_repeated` bounds the characters that YAML aliases copy, so that a small body cannot become a large document.
    """

    max_keys: int = 10_000
    max_values: int = 100_000
    max_depth: int = 64
    max_documents: int = 100
    max_repeated: int = 1024 * 1024


DEFAULT_LIMITS = DecodingLimits()


def refuse(code: str, detail: str, accepted: str | None = None, pointer: str = "") -> NoReturn:
    error = FieldError(pointer=pointer, code=code, detail=detail, accepted=accepted)
    raise MalformedDocument("the document cannot be read", errors=(error,))


def refuse_all(problems: Problems) -> NoReturn:
    raise MalformedDocument("the document cannot be read", errors=problems.errors)


def refuse_depth(limits: DecodingLimits) -> NoReturn:
    refuse("TooDeep", "the document is nested too deeply", f"at most {limits.max_depth} levels")


def refuse_keys(limits: DecodingLimits) -> NoReturn:
    refuse("TooManyKeys", "the document has too many keys", f"at most {limits.max_keys} keys")


def refuse_values(limits: DecodingLimits) -> NoReturn:
    refuse("TooManyValues", "the document has too many values", f"at most {limits.max_values} values")


def check_text(text: str, pointer: str, problems: Problems, *, what: str = "the string") -> None:
    """Report text that PostgreSQL cannot store (NUL) or UTF-8 cannot encode (a lone surrogate)."""
    if "\0" in text:
        problems.add(pointer, "NulCharacter", f"{what} contains a NUL character", "text without NUL characters")
    if _SURROGATE.search(text):
        problems.add(
            pointer, "LoneSurrogate", f"{what} contains half of a surrogate pair", "text that UTF-8 can encode"
        )


def check_int(number: int, pointer: str, problems: Problems) -> None:
    if not INT64_MIN <= number <= INT64_MAX:
        problems.add(pointer, "OutOfRange", "the integer does not fit 64 bits", f"{INT64_MIN} to {INT64_MAX}")


def utf8_text(body: bytes) -> str:
    """Decode UTF-8 without a byte order mark. MalformedDocument names the first byte that is not valid."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        refuse("InvalidUtf8", f"byte {error.start} is not valid UTF-8", "UTF-8 text")
    # Editors on Windows begin files with a byte order mark, which is not part of JSON.
    text = text.removeprefix("\ufeff")
    if not text.strip():
        refuse("EmptyBody", "the body is empty", "one document")
    return text
