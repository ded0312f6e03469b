import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcluster.node.containers.logs import LogOptions, LogWriter, last_output, read_log

BASE = 1_767_323_045  # 2026-01-02T03:04:05Z


class Clock:
    def __init__(self) -> None:
        self.seconds = BASE

    def __call__(self) -> int:
        self.seconds += 1
        return self.seconds * 10**9 + 7


def write(path: Path, *chunks: bytes, limit: int = 10**9) -> Path:
    writer = LogWriter(path, limit, Clock())
    for chunk in chunks:
        writer.write("stdout", chunk)
    writer.close()
    return path


async def read(path: Path, options: LogOptions) -> bytes:
    async def pause() -> None:
        await asyncio.sleep(0)

    return b"".join([part async for part in read_log(path, options, is_live=lambda: False, pause=pause)])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (LogOptions(), b"one\ntwo\nthree\n"),
        (LogOptions(tail_lines=2), b"two\nthree\n"),
        (LogOptions(tail_lines=0), b""),
        (LogOptions(tail_lines=9), b"one\ntwo\nthree\n"),
        (LogOptions(limit_bytes=5), b"one\nt"),
        (LogOptions(limit_bytes=0), b""),
        (LogOptions(tail_lines=1, timestamps=True), b"2026-01-02T03:04:08.000000007Z three\n"),
        (LogOptions(since=datetime.fromtimestamp(BASE + 2, UTC)), b"two\nthree\n"),
        (LogOptions(since=datetime.fromtimestamp(BASE + 9, UTC)), b""),
    ],
)
async def test_filters(tmp_path: Path, options: LogOptions, expected: bytes) -> None:
    path = write(tmp_path / "0.log", b"one\n", b"two\n", b"three\n")
    assert await read(path, options) == expected


async def test_a_line_in_parts_has_one_time(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log", b"x" * 40000 + b"\nnext\n")
    text = await read(path, LogOptions(timestamps=True))
    stamp = b"2026-01-02T03:04:06.000000007Z "
    assert text == stamp + b"x" * 40000 + b"\n" + stamp + b"next\n"


def test_lines_are_cri(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log", b"half ", b"whole\nrest")
    assert path.read_bytes().splitlines() == [
        b"2026-01-02T03:04:07.000000007Z stdout F half whole",
        b"2026-01-02T03:04:08.000000007Z stdout P rest",
    ]


@given(st.lists(st.binary(max_size=40000), max_size=6))
def test_every_byte_comes_back_whatever_the_chunks(chunks: list[bytes]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "0.log", *[c for c in chunks if c])
        assert asyncio.run(read(path, LogOptions())) == b"".join(chunks)


@given(st.integers(0, 30), st.integers(0, 25))
def test_the_tail_is_the_last_lines(total: int, wanted: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        lines = [f"line {i} {'x' * (i * 997 % 9000)}\n".encode() for i in range(total)]
        path = write(Path(folder) / "0.log", *lines)
        assert asyncio.run(read(path, LogOptions(tail_lines=wanted))) == b"".join(lines[max(0, total - wanted) :])


def test_a_log_stops_growing_at_its_limit(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log", *[b"x" * 100 + b"\n"] * 50, limit=1000)
    assert path.stat().st_size < 1200


async def test_following_ends_with_the_container(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    writer = LogWriter(path, 10**6)
    writer.write("stdout", b"first\n")
    pauses = 0

    async def pause() -> None:
        nonlocal pauses
        pauses += 1
        writer.write("stderr", f"more {pauses}\n".encode())

    parts = read_log(path, LogOptions(follow=True), is_live=lambda: pauses < 2, pause=pause)
    assert b"".join([part async for part in parts]) == b"first\nmore 1\nmore 2\n"
    writer.close()


def test_the_last_output_is_short(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log", *[f"{i}\n".encode() for i in range(200)])
    assert last_output(path, lines=3, limit=2048) == "197\n198\n199\n"
    assert last_output(path, lines=3, limit=5) == "\n199\n"
    assert last_output(tmp_path / "none", lines=3, limit=5) == ""


def test_the_last_output_keeps_carriage_returns(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log", b"10%\r20%\rboom\r\n", b"\x0b1\x0c2\n")
    assert last_output(path, lines=3, limit=2048) == "10%\r20%\rboom\r\n\x0b1\x0c2\n"
