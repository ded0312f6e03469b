"""Credentials: how they reach juicefs, and that nothing reveals them."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typing_extensions import override

from cacheserver.programs.secrets import ENVIRONMENT, SyncEnd, scrubber, sync_ends
from tests.support.cache.cache_server import ALLOWED, cache_server
from tests.support.cache.juicefs import needs_juicefs
from tests.support.machine.processes import processes_of
from tests.support.waiting import until

ACCESS, SECRET = "AKIDEXAMPLEKEY", "s3cr3t+Pass%2Fword"

HIDDEN = {
    "a uri": ("cannot list s3://AKIDEXAMPLEKEY:s3cr3t+Pass%2Fword@b/x", "cannot list s3://***@b/x"),
    "the decoded secret": ("bad key s3cr3t+Pass/word!", "bad key ***!"),
    "the access key": ("user AKIDEXAMPLEKEY denied", "user *** denied"),
    "another uri": ("redis://me:other@host", "redis://***@host"),
    "three slashes": ("file:///me:other@x", "file:///***@x"),
    "nothing": ("Found: 5, copied: 5 at 12:30", "Found: 5, copied: 5 at 12:30"),
}


@pytest.mark.parametrize(("text", "left"), HIDDEN.values(), ids=HIDDEN)
def test_texts_are_scrubbed(text: str, left: str) -> None:
    assert scrubber([f"s3://{ACCESS}:{SECRET}@bucket/"])(text) == left


def test_a_short_secret_is_hidden_as_a_whole_word_only() -> None:
    assert scrubber(["s3://ak:sk@b"])("task of ak and sk") == "task of *** and ***"


def test_a_secret_with_an_at_sign_is_hidden_whole() -> None:
    assert scrubber(["s3://me:p@ssword@b/"])("parse s3://me:p@ssword@b/: p@ssword") == "parse s3://***@b/: ***"


def test_keys_go_to_the_environment_where_juicefs_reads_it() -> None:
    for scheme, (access, secret) in ENVIRONMENT.items():
        left, right = sync_ends(f"{scheme}://{ACCESS}:{SECRET}@host/b/", "file:///mnt/S/")
        assert left == SyncEnd(f"{scheme}://host/b/", {access: ACCESS, secret: "s3cr3t+Pass/word"})
        assert right == SyncEnd("file:///mnt/S/")


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        ("webdav://a:b@h/", "file:///x"),
        ("s3://:b@h/", "file:///x"),
        ("s3://a@h/", "file:///x"),
        ("s3://h/a@b", "file:///x"),
        ("s3://h/", "s3://a:b@g/"),
    ],
)
def test_uris_that_stay_as_they_are(source: str, destination: str) -> None:
    assert sync_ends(source, destination) == (SyncEnd(source), SyncEnd(destination))


def test_two_ends_of_one_storage_do_not_share_keys() -> None:
    left, right = sync_ends("s3://a:b@h/", "s3://c:d@g/")
    assert left.environment
    assert right == SyncEnd("s3://c:d@g/")


@contextmanager
def storage() -> Iterator[tuple[str, list[str]]]:
    """An S3 server that holds requests until the test has inspected the processes, and then refuses them."""
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            released.wait(30)
            body = f"<Error><Code>AccessDenied</Code><Message>{ACCESS} is not {SECRET}</Message></Error>".encode()
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    released = threading.Event()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    Handler.released = released  # type: ignore[attr-defined]
    try:
        yield f"127.0.0.1:{server.server_address[1]}", seen
    finally:
        released.set()
        server.shutdown()
        thread.join()
        server.server_close()


@needs_juicefs
async def test_keys_reach_the_storage_only(tmp_path: Path) -> None:
    with storage() as (address, seen), cache_server(tmp_path) as server:
        source = f"minio://{ACCESS}:{SECRET}@{address}/bucket/"
        options = {"source": source, "destination": f"file://{tmp_path}/out/"}
        name = await server.post("sync", options)
        await until(lambda: seen, what="the storage is asked")
        commands = processes_of(server.mark).values()
        assert any("juicefs --verbose sync" in command for command in commands)
        assert not [command for command in commands if ACCESS in command or "s3cr3t" in command]
        assert ACCESS in seen[0]
        await server.terminate()
        await server.ended("sync", name)

        refused = await server.post("sync", {**options, "source": f"minio://{ACCESS}:{SECRET}@127.0.0.1:1/bucket/"})
        failed = await server.ended("sync", refused)
        assert failed["status"] == "fail"
        odd = await server.post("sync", {**options, "source": f"file:///{ACCESS}:{SECRET}@nowhere/"})
        results = [failed, await server.ended("sync", odd), await server.result("sync", name)]
        assert not [text for text in (json.dumps(results), server.log()) if ACCESS in text or "s3cr3t" in text]
        assert (await server.ask("GET", f"/syncOptions/{name}")).json() == ALLOWED | options
