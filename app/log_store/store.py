"""Objects by name, over `obstore`. Every call ends within a time, and has one kind of error."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import obstore
from obstore import store as stores
from obstore.exceptions import BaseError

from app.log_store.disk import DurableFolder

SCHEMES: Final = ("s3", "gs", "az", "file")
_CALLED: Final = "the log store"  # in messages
_CONNECT: Final = 5.0  # seconds
_TIMEOUT: Final = 20.0  # seconds of a call, with its retries
_RETRIES: Final = 2
_LISTED_AT_ONCE: Final = 1000  # S3's own limit
_LONGEST_MESSAGE: Final = 300  # characters; obstore adds the whole request and its tries


class StoreUnavailable(Exception):  # noqa: N818 - a state of the store
    """The store did not answer in time, or refused a call. The call may or may not have had an effect."""


class ObjectMissing(Exception):  # noqa: N818 - an answer of the store
    """The store has no such object."""


class StoredObject(NamedTuple):
    name: str
    size: int
    modified_at: datetime


class LogStore:
    """An object store, or a folder in one. Names of objects are paths with slashes. A write returns when it is durable.

    Raises, in every method:
        StoreUnavailable: the store did not answer within `timeout` seconds, or refused the call.
    """

    def __init__(
        self, store: Any, *, timeout: float = _TIMEOUT, called: str = _CALLED, disk: DurableFolder | None = None
    ) -> None:
        self._store = store
        self._disk = disk
        self._timeout = timeout
        self._called = called

    async def put(self, name: str, data: bytes) -> None:
        """Write a whole object."""
        async with self._call():
            await obstore.put_async(self._store, name, data, use_multipart=False)
            await self._sync(name)

    async def put_file(self, name: str, file: BinaryIO) -> None:
        """Write a whole object from a file, without all of it in memory. That of the last writer to end stays."""
        async with self._call():
            await obstore.put_async(self._store, name, file)
            await self._sync(name)

    async def _sync(self, name: str) -> None:
        if self._disk is not None:
            await self._disk.sync(name)

    async def pieces(self, name: str) -> AsyncIterator[bytes]:
        """Yield an object in pieces.

        Raises:
            ObjectMissing: there is none of this name.
        """
        async with self._call(of_object=name):
            async for piece in (await obstore.get_async(self._store, name)).stream():
                yield bytes(piece)

    async def get(self, name: str) -> bytes:
        """Return the whole content of an object.

        Raises:
            ObjectMissing: there is none of this name.
        """
        async with self._call(of_object=name):
            found = await obstore.get_async(self._store, name)
            return bytes(await found.bytes_async())

    async def modified_at(self, name: str) -> datetime:
        """Return when an object was written, by the clock of the store.

        Raises:
            ObjectMissing: there is none of this name.
        """
        async with self._call(of_object=name):
            found = await obstore.head_async(self._store, name)
            return found["last_modified"]

    async def delete(self, names: Sequence[str]) -> None:
        """Delete objects. One that does not exist is no error."""
        for name in names:
            try:
                async with self._call(of_object=name):
                    await obstore.delete_async(self._store, name)
            except ObjectMissing:
                continue

    async def list(self, prefix: str) -> AsyncIterator[Sequence[StoredObject]]:
        """Yield the objects whose names begin with whole folders, in pages."""
        pages = obstore.list(self._store, prefix, chunk_size=_LISTED_AT_ONCE)
        while True:
            async with self._call():
                page = await anext(pages, None)
            if page is None:
                return
            yield [StoredObject(item["path"], item["size"], item["last_modified"]) for item in page]

    async def remove_unfinished(self, names: str, age: timedelta) -> None:
        """Remove what processes that were killed have left of objects whose names match the pattern.

        Only what is older by the clock of the store: an object that a process still writes would be damaged. Without a
        bound of time, because it can read a whole tree. Buckets show nothing of an object before all of it is written.
        """
        if self._disk is None:
            return
        try:
            await self._disk.remove_unfinished(names, age.total_seconds())
        except OSError as error:
            raise self._refusal(error) from error

    @asynccontextmanager
    async def _call(self, *, of_object: str | None = None) -> AsyncIterator[None]:
        """Bound a call by a time, and translate its errors.

        A call `of_object` can miss that object. What any other one misses is the bucket.
        """
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except FileNotFoundError as error:
            if of_object is None:
                raise self._refusal(error) from error
            await self._require_bucket(of_object)
            raise ObjectMissing(_first_line(error)) from error
        except TimeoutError as error:
            raise StoreUnavailable(f"{self._called} did not answer within {self._timeout:g} s") from error
        except (BaseError, OSError, ValueError) as error:
            raise self._refusal(error) from error

    async def _require_bucket(self, absent: str) -> None:
        """Return if the bucket exists, after a store has answered that an object in it does not.

        That answer does not say in all stores which of the two is missing. A list fails only without the bucket.
        """
        async with self._call():
            if self._disk is not None:
                await self._disk.require()
            await anext(obstore.list(self._store, absent), None)

    def _refusal(self, error: Exception) -> StoreUnavailable:
        return StoreUnavailable(f"{self._called} refused a call: {_first_line(error)}")


def open_store(url: str, *, timeout: float = _TIMEOUT, called: str = _CALLED) -> LogStore:
    """Open the store at a URL. Credentials come from the environment, as the SDKs of the clouds read them.

    Nothing is sent to the store: a store that does not exist is an error of the first call.

    Raises:
        ValueError: the URL is not one of a store.
    """
    scheme, _, path = url.partition("://")
    if scheme not in SCHEMES or not path:
        raise ValueError(f"{url}: expected {', '.join(f'{scheme}://…' for scheme in SCHEMES)}")
    try:
        if scheme == "file":
            disk = DurableFolder(Path(path))
            return LogStore(stores.LocalStore(Path(path)), timeout=timeout, called=called, disk=disk)
        store = stores.from_url(
            url,
            client_options={
                "timeout": timedelta(seconds=timeout),
                "connect_timeout": timedelta(seconds=_CONNECT),
                "allow_http": True,  # to an endpoint that the environment names with http://
            },
            retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=timeout)},
        )
    except (BaseError, OSError) as error:
        raise ValueError(f"{url}: {_first_line(error)}") from error
    return LogStore(store, timeout=timeout, called=called)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:_LONGEST_MESSAGE]
