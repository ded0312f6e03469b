"""The three patch formats: JSON merge patch (RFC 7386), JSON patch (RFC 6902) and strategic merge patch. Pure."""

from copy import deepcopy
from typing import Any

from devcluster.errors import StatusError, bad_request, unsupported_media_type
from devcluster.formats.objects import Object
from devcluster.formats.schema import TYPES

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+"
STRATEGIC = "application/strategic-merge-patch+json"


def apply(content_type: str, target: Object, patch: Any, kind: str) -> Object:
    """Return the patched object. `target` may be changed in place; `patch` is not changed."""
    check_type(content_type, kind)
    if content_type == JSON:
        return _json_patch(target, patch)
    if not isinstance(patch, dict):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        )
    if content_type == MERGE:
        return _merge(target, patch)
    return _strategic(target, patch, kind)


def check_type(content_type: str, kind: str) -> None:
    """Raise UnsupportedMediaType if the server does not support this patch format for the kind."""
    if content_type.startswith(APPLY):
        why = "the embedded cluster has no server-side apply; apply without --server-side"
        raise unsupported_media_type(why)
    if content_type not in (JSON, MERGE) and not (content_type == STRATEGIC and kind in TYPES):
        raise unsupported_media_type("415: Unsupported Media Type")


def _merge(target: Any, patch: Object) -> Object:
    result: Object = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merge(result.get(key), value)
        else:
            result[key] = deepcopy(value)
    return result


def _strategic(target: Any, patch: Object, kind: str) -> Object:
    if patch.get("$patch") == "replace":
        return {key: deepcopy(value) for key, value in patch.items() if key != "$patch"}
    result: Object = target if isinstance(target, dict) else {}
    fields = TYPES.get(kind, {})
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            result[name] = [item for item in result.get(name) or [] if item not in value]
        elif key == "$retainKeys":
            result = {name: item for name, item in result.items() if name in value}
        # Directives that only order lists have no effect on the content.
        elif key.startswith("$"):
            continue
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = _strategic_value(result.get(key), value, fields.get(key, "any"))
    return result


def _strategic_value(target: Any, value: Any, field_type: str) -> Any:
    kind, merges, merge_key = field_type.partition("|")
    if isinstance(value, dict):
        return _strategic(target, value, kind.removeprefix("map:"))
    if not isinstance(value, list) or not merges:
        return deepcopy(value)
    # Without a merge key, the items are scalars, which form a set.
    if not merge_key:
        return [*(target or []), *(item for item in value if item not in (target or []))]
    return _merge_list(target or [], value, kind.removeprefix("[]"), merge_key)


def _merge_list(target: list[Any], patch: list[Any], kind: str, merge_key: str) -> list[Any]:
    # An item with only this directive replaces the whole list.
    if any(item.get("$patch") == "replace" and merge_key not in item for item in patch):
        return [deepcopy(item) for item in patch if "$patch" not in item]
    result = list(target)
    for item in patch:
        index = next((at for at, old in enumerate(result) if old.get(merge_key) == item.get(merge_key)), None)
        if item.get("$patch") == "delete":
            if index is not None:
                del result[index]
        elif index is None:
            result.append(_strategic({}, item, kind))
        else:
            result[index] = _strategic(result[index], item, kind)
    return result


def _json_patch(target: Any, patch: Any) -> Object:
    if not isinstance(patch, list):
        raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    # If a step fails, its caller discards the copy, so no part of a patch is stored.
    for step in patch:
        target = _json_step(target, step)
    result: Object = target
    return result


def _json_step(target: Any, step: Object) -> Any:
    operation, path = step.get("op"), step.get("path", "")
    if operation in ("move", "copy"):
        source = str(step.get("from", ""))
        value = deepcopy(_read(target, source))
        if operation == "move":
            _remove(target, source)
        return _write(target, path, value, replace=False)
    if operation == "test":
        if _read(target, path) != step.get("value"):
            raise _failure()
        return target
    if operation == "remove":
        _remove(target, path)
        return target
    if operation in ("add", "replace"):
        return _write(target, path, deepcopy(step.get("value")), replace=operation == "replace")
    raise bad_request(f"Unexpected kind: {operation}")


def _failure() -> StatusError:
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", details={})


def _parts(path: str) -> list[str]:
    # ~1 first (RFC 6901): ~01 stands for ~1 and not for a slash.
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _descend(target: Any, parts: list[str]) -> Any:
    for part in parts:
        try:
            target = target[int(part)] if isinstance(target, list) else target[part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise _failure() from None
    return target


def _read(target: Any, path: str) -> Any:
    return _descend(target, _parts(path))


def _remove(target: Any, path: str) -> None:
    *parents, last = _parts(path)
    container = _descend(target, parents)
    _descend(container, [last])
    if isinstance(container, list):
        del container[int(last)]
    else:
        del container[last]


def _write(target: Any, path: str, value: Any, *, replace: bool) -> Any:
    if not path:
        return value
    *parents, last = _parts(path)
    container = _descend(target, parents)
    if replace:
        _descend(container, [last])
    if not isinstance(container, list):
        container[last] = value
    elif last == "-":
        container.append(value)
    elif replace:
        container[int(last)] = value
    else:
        container.insert(int(last), value)
    return target
