"""Decodes objects. Decoding never fails, because one malformed object must not stop a whole watch.

The fast path decodes directly into structs. If it fails (a null in place of a list, invalid UTF-8, a lone surrogate, a
field of the wrong type), the slow path repairs the text, drops nulls, and then drops the malformed fields one by one.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from app.domain.kubernetes.objects import Event, Metadata, Node, Object, Pod
from app.domain.kubernetes.queueing import ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload
from app.k8s.errors import BrokenAnswer
from app.k8s.text import clean_json, clean_text

MAX_REPAIRS = 50  # fields dropped from one object before only its metadata is kept

# msgspec reports the path of the wrong field only in its message.
_PATH = re.compile(r"`(\$[^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[(\.\.\.)\]")


class HasMetadata(Protocol):
    """An object with metadata, which is all that a reflector needs."""

    @property
    def metadata(self) -> Metadata: ...


T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T", bound=HasMetadata)


class Codec(Protocol[T_co]):
    """Decodes objects of one type."""

    def decode(self, raw: bytes | memoryview | msgspec.Raw) -> T_co:
        """Decode an object. Raises BrokenAnswer if the bytes are not a JSON object."""
        ...


class StructCodec(Generic[T]):
    """Decodes objects of one struct type."""

    def __init__(self, struct: type[T]) -> None:
        self._struct = struct
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(struct)

    def decode(self, raw: bytes | memoryview | msgspec.Raw) -> T:
        data = clean_json(bytes(raw))
        try:
            return self._decoder.decode(data)
        except (msgspec.MsgspecError, UnicodeError):
            repaired: T = _convert(load_object(data), self._struct)
            return repaired


class ObjectCodec:
    """Decodes any object and keeps all its fields."""

    def decode(self, raw: bytes | memoryview | msgspec.Raw) -> Object:
        value = load_object(bytes(raw))
        metadata = value.get("metadata")
        return Object(metadata=_convert(metadata if isinstance(metadata, dict) else {}, Metadata), raw=value)


POD = StructCodec(Pod)
NODE = StructCodec(Node)
EVENT = StructCodec(Event)
WORKLOAD = StructCodec(Workload)
LOCAL_QUEUE = StructCodec(LocalQueue)
CLUSTER_QUEUE = StructCodec(ClusterQueue)
COHORT = StructCodec(Cohort)
RESOURCE_FLAVOR = StructCodec(ResourceFlavor)
OBJECT = ObjectCodec()


class ListPage(msgspec.Struct, Generic[T_co], frozen=True):
    """One page of a list. Its objects may be decoded while they are iterated over, which can raise BrokenAnswer."""

    items: Iterable[T_co]
    resource_version: str
    continue_token: str = ""


class _ListMeta(msgspec.Struct, rename={"resource_version": "resourceVersion", "continue_token": "continue"}):
    resource_version: str = ""
    continue_token: str | None = None


class _List(msgspec.Struct):
    items: list[msgspec.Raw] | None
    metadata: _ListMeta


class _Decoded(Generic[T_co]):
    """The objects of a page, decoded at each iteration. So a reader can request the next page before it decodes one."""

    def __init__(self, items: Sequence[msgspec.Raw], codec: Codec[T_co]) -> None:
        self._items = items
        self._codec = codec

    def __iter__(self) -> Iterator[T_co]:
        return map(self._codec.decode, self._items)


_LIST = msgspec.json.Decoder(_List)
_ANY = msgspec.json.Decoder()


def decode_page(raw: bytes, codec: Codec[T_co]) -> ListPage[T_co]:
    """Read a page of a list. Items are decoded one by one, so that a malformed one does not affect the others."""
    try:
        page = _LIST.decode(raw)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BrokenAnswer(f"a list could not be read: {error}") from error
    return ListPage(
        items=_Decoded(page.items or (), codec),
        resource_version=page.metadata.resource_version,
        continue_token=page.metadata.continue_token or "",
    )


def load_object(raw: bytes) -> dict[str, Any]:
    """Decode a JSON object and clean its strings. Raises BrokenAnswer if it is not a JSON object."""
    value = load_json(raw)
    if not isinstance(value, dict):
        raise BrokenAnswer(f"expected a JSON object, got {type(value).__name__}")
    return value


def load_json(raw: bytes) -> Any:
    """Decode a JSON value and clean its strings. Raises BrokenAnswer if it is not JSON."""
    data = clean_json(raw)
    try:
        return _ANY.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    try:
        # The parser of the standard library also accepts control characters and lone surrogates, which are then
        # replaced.
        return _clean(json.loads(data.decode("utf-8", "replace"), strict=False))
    except (ValueError, RecursionError) as error:
        raise BrokenAnswer(f"not JSON: {error}") from error


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value


def _convert(value: Any, struct: type[T] | type[Metadata]) -> Any:
    """Convert a value to a struct. Fields of the wrong type are dropped."""
    value = _without_nulls(value)
    for _ in range(MAX_REPAIRS):
        try:
            return msgspec.convert(value, struct, strict=False)
        except msgspec.ValidationError as error:
            path = _PATH.search(str(error))
            if path is None or not _drop(value, _STEP.findall(path[1])):
                break
    metadata = value.get("metadata")
    if struct is Metadata or not isinstance(metadata, dict):
        return struct()
    return struct(metadata=_convert(metadata, Metadata))  # type: ignore[call-arg]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value


def _drop(value: Any, steps: list[tuple[str, str, str]]) -> bool:
    """Remove the field at a path. If the path has an unknown key of a mapping, the whole mapping is removed."""
    if not steps:
        return False
    parent: Any = None
    last: Any = None
    for name, index, wildcard in steps:
        if wildcard:
            break
        parent = value if parent is None else parent[last]
        last = name or int(index)
    if parent is None:
        return False
    del parent[last]
    return True
