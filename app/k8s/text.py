r"""Cleans text from the cluster, so that Postgres can store it.

Container messages and logs are whatever a program wrote. Postgres refuses NUL in text, and Python strings with lone
surrogates cannot be encoded, so one pod could stop everything behind it. Each offending piece becomes U+FFFD, once,
here; nothing behind this module needs to think of it.
"""

import re

REPLACEMENT = "\ufffd"

_ESCAPED_NUL = b"\\u0000"
# Consumes escapes left to right, so that the text `\\u0000` (a backslash, then letters) is not taken for a NUL.
_JSON_ESCAPE = re.compile(rb"\\(?:u0000|.)", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str | bytes) -> str:
    """Return the text without NUL characters and lone surrogates."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if text.isascii():
        return text
    return _SURROGATE.sub(REPLACEMENT, text)


def clean_json(raw: bytes) -> bytes:
    """Return the JSON document with every escaped NUL in its strings replaced."""
    if _ESCAPED_NUL not in raw:
        return raw
    return _JSON_ESCAPE.sub(_without_nul, raw)


def _without_nul(escape: re.Match[bytes]) -> bytes:
    return b"\\ufffd" if escape[0] == _ESCAPED_NUL else escape[0]
