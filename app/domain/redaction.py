"""Removes the values of environment variables from documents: manifests, posted manifests and stored answers."""

from typing import Any, Final

REDACTED: Final = "<redacted>"


def redacted(document: Any) -> Any:
    """Return the JSON value with REDACTED in place of each value in a list `env`.

    Pod templates are at different places in each kind, and all of them are found by the name of this field. A variable
    with `valueFrom` keeps it: the reference names a Secret, and does not contain it.
    """
    if isinstance(document, list):
        return [redacted(item) for item in document]
    if not isinstance(document, dict):
        return document
    return {
        key: [_variable(item) for item in value] if key == "env" and isinstance(value, list) else redacted(value)
        for key, value in document.items()
    }


def is_redacted(document: Any) -> bool:
    """Return whether a value of an environment variable was redacted."""
    if isinstance(document, list):
        return any(map(is_redacted, document))
    if not isinstance(document, dict):
        return False
    return any(
        any(isinstance(item, dict) and item.get("value") == REDACTED for item in value)
        if key == "env" and isinstance(value, list)
        else is_redacted(value)
        for key, value in document.items()
    )


def _variable(item: Any) -> Any:
    if isinstance(item, dict) and item.get("value"):
        return {**item, "value": REDACTED}
    return item
