"""An object storage with the API of S3. A test chooses the names of objects, delays answers or aborts them."""

import http.server
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from typing_extensions import override

from tests.support.cache.signatures import is_signed

ACCESS, SECRET = "AKIDEXAMPLEKEY", "s3cr3t+Pass%2Fword"
# A constant time of change, so that a sync considers no object changed.
_DATE = "Wed, 01 Jan 2020 00:00:00 GMT"


class Storage:
    """The storage. A test can replace `answer`, which returns the data of a key, or None to close the connection."""

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        self.objects = dict(objects)
        self.asked: list[str] = []
        self.address = ""
        self.answer: Callable[[str], bytes | None] = lambda key: self.objects[key]
        self.keys: tuple[str, str] | None = None  # without these, nobody is asked for any

    @property
    def uri(self) -> str:
        return f"minio://{ACCESS}:{SECRET}@{self.address}/bucket/"

    def listing(self, marker: str) -> bytes:
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"e"</ETag><Size>{len(body)}</Size></Contents>'
            for key, body in sorted(self.objects.items())
            if key > marker
        )
        head = "<Name>bucket</Name><IsTruncated>false</IsTruncated>"
        return f"<ListBucketResult>{head}{entries}</ListBucketResult>".encode()

    def key_of(self, path: str) -> str:
        """The key of a request. The client of juicefs removes `..` from the path."""
        asked = unquote(path).removeprefix("/bucket").strip("/")
        return asked if asked in self.objects else next(key for key in self.objects if key.endswith(asked))


@contextmanager
def object_storage(objects: Mapping[str, bytes]) -> Iterator[Storage]:
    storage = Storage(objects)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            storage.asked.append(self.path)
            if storage.keys and not is_signed(self.command, self.path, self.headers, *storage.keys):
                self.refuse()
                return
            if unquote(parts.path).strip("/") == "bucket":
                body = storage.listing(parse_qs(parts.query).get("marker", [""])[0])
            else:
                content = storage.answer(storage.key_of(parts.path))
                if content is None:
                    self.close_connection = True
                    return
                body = content
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", _DATE)
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body if self.command == "GET" else b"")

        do_HEAD = do_GET  # noqa: N815

        def refuse(self) -> None:
            body = b"<Error><Code>SignatureDoesNotMatch</Code><Message>not your key</Message></Error>"
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if self.command == "GET" else b"")

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    storage.address = f"127.0.0.1:{server.server_address[1]}"
    try:
        yield storage
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
