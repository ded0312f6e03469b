"""The manifest as the client posted it, kept as its difference from the accepted manifest.

    record(accepted, posted) ─▶ Posted: a few names and values      recall(accepted, Posted) ─▶ posted

An accepted manifest has defaults, drops what jobgate ignores, and has its own order of fields. What the client wrote
fills most of it, so the difference is short. `recall` returns an equal document, with the same types of numbers and
the same order of fields.
"""

import zlib
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from app.domain.plan import Manifest

Posted: TypeAlias = dict[str, Any]
"""`difference`, and `of`, the checksum of the accepted manifest to which it applies. JSON can represent it.

A difference is empty if the two values are the same, or has one of these forms:

    value          the posted value, in place of the accepted one
    keys, within   the names of the posted object in their order, unless they are those of the accepted object;
                   the differences of its fields by name, or of the items of an array by index
"""

Restated: TypeAlias = Callable[[Manifest | None], Manifest | None]
"""A function that returns the posted manifest after an edit from that before it. None stands for an unknown one."""

_CONTAINERS: Final = (dict, list)
_encode: Final = msgspec.json.Encoder().encode


def unchanged(document: Manifest | None) -> Manifest | None:
    """The change of an edit for which the client sends no document."""
    return document


def record(accepted: Manifest, posted: Manifest, text: bytes | None = None) -> Posted:
    """Return what `recall` needs to derive the posted manifest from the accepted one.

    `text` is the JSON of the accepted manifest, if the caller has it.
    """
    return {"of": zlib.crc32(text or _encode(accepted)), "difference": difference(accepted, posted)}


def recall(accepted: Manifest, posted: Posted | None) -> Manifest | None:
    """Return the posted manifest. None if it was not recorded, or was recorded for another accepted manifest.

    A process of a version that does not record it may have edited the manifest since.
    """
    if posted is None or posted["of"] != zlib.crc32(_encode(accepted)):
        return None
    recalled: Manifest = applied(accepted, posted["difference"])
    return recalled


def carried_over(
    before: Manifest, posted: Posted | None, after: Manifest, change: Restated = unchanged
) -> Posted | None:
    """Return the record of the posted manifest for `after`, the accepted manifest of an edit; None if unknown."""
    document = change(recall(before, posted))
    return None if document is None else record(after, document)


def difference(base: Any, wanted: Any) -> dict[str, Any]:
    """Return the difference with which `wanted` follows from `base`. Both are JSON values."""
    # Types are compared because Python finds true and 1 equal, and 1 and 1.0.
    if type(base) is not type(wanted):
        return {"value": wanted}
    if not isinstance(wanted, _CONTAINERS):
        return {} if base == wanted else {"value": wanted}
    # Most of a manifest is the same in both, such as its pod templates, and the text of a value is made faster than it
    # is walked through. It also has the order of fields and the types of numbers, which the comparison leaves out.
    if base == wanted and _encode(base) == _encode(wanted):
        return {}
    return _of_objects(base, wanted) if isinstance(wanted, dict) else _of_arrays(base, wanted)


def _of_objects(base: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    keys = list(wanted)
    if keys != list(base):
        found["keys"] = keys
    within = {}
    for key, value in wanted.items():
        if one := difference(base[key], value) if key in base else {"value": value}:
            within[key] = one
    if within:
        found["within"] = within
    return found


def _of_arrays(base: list[Any], wanted: list[Any]) -> dict[str, Any]:
    if len(base) != len(wanted):
        return {"value": wanted}
    within = {}
    for index, value in enumerate(wanted):
        if one := difference(base[index], value):
            within[str(index)] = one
    return {"within": within} if within else {}


def applied(base: Any, change: dict[str, Any]) -> Any:
    """Return the value of which `change` is the difference from `base`."""
    if not change:
        return base
    if "value" in change:
        return change["value"]
    within = change.get("within", {})
    if isinstance(base, list):
        return [applied(item, within.get(str(index), {})) for index, item in enumerate(base)]
    return {key: applied(base.get(key), within.get(key, {})) for key in change.get("keys", base)}
