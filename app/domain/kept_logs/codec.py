"""The document of a chunk in the object store: msgpack, compressed by zstd."""

from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Final

import msgspec
import zstandard

from app.domain.kept_logs.cutting import MOST_BYTES, LogChunk
from app.domain.kept_logs.records import KeptChunk

_LEVEL: Final = 3  # zstd's own default: 100 MB/s and more, so that PostgreSQL and the store are the limit
_VERSION: Final = 1
# Of a document, with its lengths and times. A damaged or foreign object must not fill the memory.
_MOST_DOCUMENT_BYTES: Final = 2 * MOST_BYTES


class DamagedChunk(Exception):  # noqa: N818 - a state of the object
    """An object is not a chunk, or not that of its row."""


class _Document(msgspec.Struct, frozen=True, kw_only=True):
    """`times` are differences, of which the first is the time of the first line, in nanoseconds since 1970.

    `name` is that of the object; earlier versions have written none.
    """

    version: int
    start: int
    text: bytes
    lengths: list[int]
    times: list[int]
    continues: bool
    name: str = ""


class ChunkText(msgspec.Struct, frozen=True, kw_only=True):
    """What the object of a chunk contains. The fields are those of `LogChunk`, and the name of the object."""

    start: int
    text: bytes
    lengths: Sequence[int]
    times: Sequence[int]
    continues: bool
    name: str


def encode_chunk(chunk: LogChunk, name: str) -> bytes:
    """Return the contents of the object with this name."""
    first = list(chunk.times[:1])
    document = _Document(
        version=_VERSION,
        start=chunk.start,
        text=chunk.text,
        lengths=list(chunk.lengths),
        times=[*first, *(later - earlier for earlier, later in pairwise(chunk.times))],
        continues=chunk.continues,
        name=name,
    )
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(msgspec.msgpack.encode(document))


def decode_chunk(stored: bytes) -> ChunkText:
    """Return the contents of an object.

    Raises:
        DamagedChunk: the object is not a chunk.
    """
    try:
        if not 0 <= zstandard.frame_content_size(stored) <= _MOST_DOCUMENT_BYTES:
            raise DamagedChunk("the object is larger than a chunk")
        document = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(stored), type=_Document)
    except (zstandard.ZstdError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise DamagedChunk(f"the object is not a chunk of a log: {error}") from error
    if document.version != _VERSION:
        raise DamagedChunk(f"the object has the format {document.version}; this process reads {_VERSION}")
    try:
        # A Python integer takes four to eight times as much memory.
        lengths, times = array("I", document.lengths), array("q", accumulate(document.times))
    except OverflowError as error:
        raise DamagedChunk("the lines of the object have impossible lengths or times") from error
    if sum(lengths) != len(document.text) or len(lengths) != len(times):
        raise DamagedChunk("the lines of the object are not those of its text")
    return ChunkText(
        start=document.start,
        text=document.text,
        lengths=lengths,
        times=times,
        continues=document.continues,
        name=document.name,
    )


def require_chunk(found: ChunkText, row: KeptChunk) -> None:
    """Check that an object is the chunk of its row.

    Raises:
        DamagedChunk: it is another one.
    """
    if found.name not in {"", row.object_name}:
        raise DamagedChunk("the object is that of another chunk, under the name of this one")
    if (found.start, len(found.text), len(found.lengths) - found.continues) != (row.start, row.length, row.lines):
        raise DamagedChunk(f"the object has {len(found.text)} bytes from byte {found.start}: it is another chunk")
