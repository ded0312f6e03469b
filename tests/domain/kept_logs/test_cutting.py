"""Logs are cut into chunks, whatever pieces they come in and however often they are opened again."""

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from app.domain.kept_logs import cutting
from app.domain.kept_logs.codec import ChunkText, DamagedChunk, decode_chunk, encode_chunk
from app.domain.kept_logs.cutting import LogChunk, LogCutter
from app.domain.kept_logs.repeats import NANOSECONDS, ReadPosition

START = int(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()) * NANOSECONDS


class Line(NamedTuple):
    """A line as a container wrote it. Only the last one of a log may lack its line break."""

    time: int
    text: bytes


def served(lines: Sequence[Line], since: datetime | None = None) -> bytes:
    """Return the log as the kubelet serves it."""
    first = 0 if since is None else int(since.timestamp()) * NANOSECONDS
    return b"".join(_time(line.time) + b" " + line.text for line in lines if line.time >= first)


def _time(nanoseconds: int) -> bytes:
    seconds, rest = divmod(nanoseconds, NANOSECONDS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z".encode()


def text_of(lines: Sequence[Line]) -> bytes:
    return b"".join(line.text for line in lines)


def read(cutter: LogCutter, log: bytes, *, pieces: Sequence[int] = ()) -> list[LogChunk]:
    """Open a log that comes in pieces of these sizes, and then the rest of it."""
    cutter.begin()
    chunks = []
    for size in pieces:
        chunks += cutter.feed(log[:size])
        log = log[size:]
    return chunks + cutter.feed(log)


def rest_of(cutter: LogCutter) -> list[LogChunk]:
    chunk = cutter.cut()
    return [] if chunk is None else [chunk]


def joined(chunks: Sequence[LogChunk]) -> list[Line]:
    """Return the lines of chunks in a row, after checking that they are in a row."""
    lines: list[Line] = []
    start = started = 0
    for chunk in chunks:
        assert (chunk.start, chunk.first_line) == (start, started)
        assert len(chunk.text) <= cutting.MOST_BYTES
        place = 0
        for index, (length, time) in enumerate(zip(chunk.lengths, chunk.times, strict=True)):
            text = chunk.text[place : place + length]
            place += length
            if index == 0 and chunk.continues:
                assert lines[-1].time == time
                lines[-1] = Line(time, lines[-1].text + text)
            else:
                lines.append(Line(time, text))
        assert place == len(chunk.text) > 0
        start += place
        started += chunk.lines
    assert started == len(lines)
    return lines


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "TARGET", 20)
    monkeypatch.setattr(cutting, "MOST_BYTES", 40)
    monkeypatch.setattr(cutting, "MOST_LINES", 5)


# Some lines are empty, some are torn over chunks, some contain what looks like a time, and several have the same time.
texts = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"", b"\r", b"2026-01-02T03:04:05.1Z x", b"\xff\x00", b"x" * 130]),
).map(lambda text: text.replace(b"\n", b"."))


@st.composite
def logs(draw: st.DrawFn) -> list[Line]:
    steps = draw(st.lists(st.tuples(st.sampled_from([0, 1, 400_000_000, NANOSECONDS]), texts), max_size=40))
    is_torn: bool = draw(st.booleans())
    time, lines = START, list[Line]()
    for step, text in steps:
        time += step
        lines.append(Line(time, text + b"\n"))
    if lines and is_torn:
        lines[-1] = Line(lines[-1].time, lines[-1].text[:-1] or b"x")
    return lines


@given(logs(), st.lists(st.integers(1, 60)))
def test_chunks_do_not_depend_on_pieces_and_contain_each_byte_once(lines: list[Line], pieces: list[int]) -> None:
    at_once, in_pieces = LogCutter(), LogCutter()
    chunks = [*read(at_once, served(lines)), *rest_of(at_once)]
    assert [*read(in_pieces, served(lines), pieces=pieces), *rest_of(in_pieces)] == chunks
    assert joined(chunks) == lines


@given(logs(), st.lists(st.tuples(st.integers(0, 400), st.booleans(), st.booleans()), max_size=6))
def test_a_log_that_is_opened_again_is_kept_once(lines: list[Line], tears: list[tuple[int, bool, bool]]) -> None:
    """After each tear the log is opened again: by the same process, or by one that knows only what is stored."""
    cutter, chunks = LogCutter(), list[LogChunk]()
    for length, flushes, crashes in tears:
        chunks += read(cutter, served(lines, cutter.since)[:length])
        chunks += rest_of(cutter) if flushes else []
        if crashes:
            stored = ReadPosition.decode(chunks[-1].position.encode()) if chunks else None
            start = sum(len(chunk.text) for chunk in chunks)
            cutter = LogCutter(start, sum(chunk.lines for chunk in chunks), stored)
    chunks += [*read(cutter, served(lines, cutter.since)), *rest_of(cutter)]
    assert joined(chunks) == lines
    assert not any(chunk.follows_gap for chunk in chunks)


def test_a_log_with_many_times_in_a_second_is_kept_once() -> None:
    lines = [Line(START + index, b"%d\n" % index) for index in range(100)]  # more times than a reader remembers
    cutter = LogCutter()
    chunks = read(cutter, served(lines[:90]))
    chunks += [*read(cutter, served(lines, cutter.since)), *rest_of(cutter)]
    assert joined(chunks) == lines


@given(logs(), st.data())
def test_lines_that_the_node_has_deleted_are_a_gap(lines: list[Line], data: st.DataObject) -> None:
    """The node deletes the beginning of the log up to a line that was not read. Its lines have different times."""
    lines = [Line(line.time + index, line.text) for index, line in enumerate(lines)]
    known = data.draw(st.integers(1, max(1, len(lines))))
    deleted = data.draw(st.integers(known, max(known, len(lines))))
    kept = lines[deleted:]
    cutter = LogCutter()
    before = read(cutter, served(lines[:known]))
    after = [*read(cutter, served(kept, cutter.since)), *rest_of(cutter)]
    assert joined([*before, *after]) == lines[:known] + kept
    gaps = [chunk.start for chunk in after if chunk.follows_gap]
    assert gaps == ([len(text_of(lines[:known]))] if kept and known <= len(lines) and lines[:known] else [])


def test_a_message_of_the_kubelet_is_no_line_of_the_log() -> None:
    cutter = LogCutter()
    assert read(cutter, served([Line(START, b"one\n")]) + b"failed to watch file: too many open files\n") == []
    assert joined(rest_of(cutter)) == [Line(START, b"one\n")]


@pytest.mark.parametrize("zone", ["+02:00", "-03:30"])
def test_times_in_the_zone_of_the_node_are_read(zone: str) -> None:
    cutter = LogCutter()
    at = datetime.fromisoformat(f"2026-01-02T03:04:05.5{zone}")
    assert read(cutter, f"2026-01-02T03:04:05.5{zone} one\n".encode()) == []
    assert [chunk.first_at for chunk in rest_of(cutter)] == [at]


@given(logs())
def test_what_is_stored_is_what_was_cut(lines: list[Line]) -> None:
    cutter = LogCutter()
    for chunk in [*read(cutter, served(lines)), *rest_of(cutter)]:
        assert decode_chunk(encode_chunk(chunk, "name")) == ChunkText(
            start=chunk.start,
            text=chunk.text,
            lengths=array("I", chunk.lengths),
            times=array("q", chunk.times),
            continues=chunk.continues,
            name="name",
        )


def test_short_lines_that_wait_count_with_their_numbers() -> None:
    cutter = LogCutter()
    assert read(cutter, served([Line(START + index, b"\n") for index in range(4)])) == []
    assert cutter.size >= 4 * (1 + array("I").itemsize + array("q").itemsize)
    rest_of(cutter)
    assert cutter.size == 0


def document_of(**fields: object) -> bytes:
    document = {"version": 1, "start": 0, "text": b"a\n", "lengths": [2], "times": [0], "continues": False} | fields
    return zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(document))


DAMAGES = (
    *(b"", b"no zstd", b"\x28\xb5\x2f\xfd"),
    *(document_of(lengths=lengths) for lengths in ([], [1], [3, -1], [2**40], [2, 0])),
    document_of(times=[2**63 - 1, 1], lengths=[1, 1]),
    document_of(version=2),
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_another_object_is_no_chunk(damage: bytes) -> None:
    with pytest.raises(DamagedChunk):
        decode_chunk(damage)


def test_a_damaged_chunk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "TARGET", 1024)
    cutter = LogCutter()
    read(cutter, served([Line(START + index, b"%d\n" % index) for index in range(3)]))
    stored = encode_chunk(rest_of(cutter)[0], "name")
    with pytest.raises(DamagedChunk):
        decode_chunk(stored[:-1])
    with pytest.raises(DamagedChunk):
        decode_chunk(bytes([*stored[:-6], stored[-6] ^ 1, *stored[-5:]]))
