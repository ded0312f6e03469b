"""Where segments are: a folder of this machine or of an object store.

A segment is written to a file without a name, and put whole. So a folder never has a part of a segment.
"""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO, Final, cast
from urllib.parse import urlsplit

from app.log_store import LogStore, ObjectMissing, StoreUnavailable, open_store

SUFFIX: Final = ".jsonl.zst"
_IN_MEMORY: Final = 16 * 1024 * 1024  # bytes of a segment; the part of a larger one is in a temporary file
_SECONDS: Final = 120.0  # for one segment: that of a job with ten thousand replicas may have hundreds of megabytes
_URL: Final = re.compile(r"[a-z0-9]+://")


class FolderUnavailable(OSError):  # noqa: N818  named after what happened, as the errors of the domain
    """The folder does not exist or does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFolder:
    """A folder with segments, or one segment of it if `only` names one.

    `address` is its absolute path or URL.
    """

    address: str
    store: LogStore
    only: str | None = None

    async def names(self) -> Sequence[str]:
        """Return the names of the segments in order."""
        if self.only is not None:
            return [self.only]
        with _translate_errors():
            found = [item.name async for page in self.store.list("") for item in page]
        return sorted(name for name in found if name.endswith(SUFFIX))

    async def put(self, name: str, file: BinaryIO) -> None:
        """Write a segment, whole and durably, from its beginning."""
        file.seek(0)
        with _translate_errors():
            await self.store.put_file(name, file)

    async def remove_unfinished(self, names: str, age: timedelta) -> None:
        """Remove what killed processes have left of segments whose names match the pattern, if it is older."""
        try:
            async with asyncio.timeout(_SECONDS):
                with _translate_errors():
                    await self.store.remove_unfinished(names, age)
        except TimeoutError as error:
            raise FolderUnavailable(f"{self.address} did not answer within {_SECONDS:g} s") from error

    async def remove(self, name: str) -> None:
        """Remove a segment."""
        with _translate_errors():
            await self.store.delete([name])

    @asynccontextmanager
    async def get(self, name: str) -> AsyncIterator[BinaryIO]:
        """Yield a copy of a segment, which can be read more than once."""
        with new_file() as file:
            with _translate_errors(name):
                async for piece in self.store.pieces(name):
                    file.write(piece)
            yield file


@contextmanager
def new_file() -> Iterator[BinaryIO]:
    """Yield a file without a name, for a segment. It is gone when the process ends, however that happens."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        yield cast(BinaryIO, file)  # it has all methods of one


def open_folder(address: str, *, for_reading: bool = False) -> ExportFolder:
    """Return the folder with this path or URL. For reading, it may also be a single segment.

    Raises:
        FolderUnavailable: it is no URL of a store; or for reading, the path does not exist.
    """
    only = None
    if for_reading and address.endswith(SUFFIX):
        address, _, only = address.rpartition("/") if "/" in address else (".", "", address)
    path = (
        None if _URL.match(address) and not address.startswith("file://") else Path(urlsplit(address).path or address)
    )
    if path is not None:
        path = path.absolute()
        if for_reading and not path.is_dir():
            raise FolderUnavailable(f"there is no folder {path}")
        address = f"file://{path}"
    try:
        return ExportFolder(address=address, store=open_store(address, timeout=_SECONDS, called=address), only=only)
    except (ValueError, OSError) as error:
        raise FolderUnavailable(str(error)) from error


@contextmanager
def _translate_errors(name: str = "") -> Iterator[None]:
    try:
        yield
    except ObjectMissing as error:
        raise FolderUnavailable(f"there is no {name}") from error
    except StoreUnavailable as error:
        raise FolderUnavailable(str(error)) from error
