"""A line of a log ends with a line feed, and its bytes reach a pipe as the container wrote them."""

import json
from collections.abc import Iterator

import httpx2
import pytest
import yaml
from typing_extensions import override

from jobgate.client import Client
from jobgate.client.log_bytes import LineSplitter, readable
from tests.client.scripted import RunCommand, page, replica

# A progress bar, separators of other line-breaking rules (\v, \f, FS, NEL, U+2028), bytes that are not UTF-8, no end.
LINES = (
    b"0 %\r50 %\r100 %",
    b"a\x0bb\x0cc\x1cd\xc2\x85e\xe2\x80\xa8f",
    b"\xff\xfe caf\xe9 caf\xc3\xa9",
    b"of Windows\r",
    b"the end",
)
LOG = b"\n".join(LINES)


class Chunks(httpx2.SyncByteStream):
    """A body that arrives in parts of one size."""

    def __init__(self, size: int) -> None:
        self._size = size

    @override
    def __iter__(self) -> Iterator[bytes]:
        return (LOG[place : place + self._size] for place in range(0, len(LOG), self._size))


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_log_is_split_at_line_feeds_only(size: int) -> None:
    splitter = LineSplitter()
    found = [line for place in range(0, len(LOG), size) for line in splitter.feed(LOG[place : place + size])]
    found += splitter.rest()
    assert [line.encode("utf-8", "surrogateescape") for line in found] == list(LINES)
    assert splitter.rest() == []


@pytest.mark.parametrize("size", [1, 1000])
def test_lines_of_the_library_are_text(size: int) -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, stream=Chunks(size)))
    with Client("http://gateway.example", transport=transport) as client:
        assert list(client.jobs.logs("tour")) == [line.decode("utf-8", "replace") for line in LINES]


def test_raw_lines_are_the_bytes_of_the_container(run: RunCommand) -> None:
    result, _ = run(["logs", "tour", "--raw"], httpx2.Response(200, content=LOG))
    assert result.stdout_bytes == LOG + b"\n"


def test_lines_are_readable_in_a_pipe_and_on_a_terminal(run: RunCommand) -> None:
    result, _ = run(["logs", "tour"], httpx2.Response(200, content=LOG))
    assert result.stdout.splitlines() == [
        "0 %",
        "50 %",
        "100 %",
        r"a\x0bb\x0cc\x1cd\x85e\u2028f",
        r"\xff\xfe caf\xe9 café",
        "of Windows",
        "the end",
    ]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_each_line_is_one_object(run: RunCommand, output: str) -> None:
    log = httpx2.Response(200, content=LOG)
    result, _ = run(["logs", "tour", "-o", output], page([replica(0, "Running")]), log)
    documents = yaml.safe_load_all(result.stdout) if output == "yaml" else map(json.loads, result.stdout.splitlines())
    assert [each["line"] for each in documents] == [line.decode("utf-8", "replace") for line in LINES]


def test_text_without_such_bytes_is_unchanged() -> None:
    assert readable("café \U0001f600") == "café \U0001f600"
