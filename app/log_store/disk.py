"""Brings files of a folder to the disk. A loss of power leaves a file empty, or without a name, that is not there yet.

obstore writes a file under another name and renames it, without a call of fsync.
"""

import asyncio
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

# Not those of the loop, which also look up host names: a disk that hangs must not hold up anything else.
_THREADS: Final = 4


class DurableFolder:
    """A folder, which is made if there is none. Nothing removes the directories in it.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
            missing.mkdir(exist_ok=True)  # another process can make it too
            _fsync(missing.parent)
        self._folder = folder
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="disk")
        self._durable: set[Path] = set()  # directories that their parents have on the disk

    async def require(self) -> None:
        """Return if the folder is still there.

        Raises:
            OSError: it is not.
        """
        await asyncio.get_running_loop().run_in_executor(self._threads, os.listdir, self._folder)

    async def sync(self, name: str) -> None:
        """Return when a file, with its path within the folder, is on the disk. Cancelling the caller does not stop it.

        Raises:
            OSError: it may not be there.
        """
        await asyncio.get_running_loop().run_in_executor(self._threads, self._sync, self._folder / name)

    async def remove_unfinished(self, names: str, age: float) -> None:
        """Remove what processes that were killed have left of files whose names match the pattern.

        Only what nothing was added to for `age` seconds. What a process still writes would be lost or damaged.

        Raises:
            OSError: something may be left.
        """
        await asyncio.get_running_loop().run_in_executor(self._threads, self._remove_unfinished, names, age)

    def _remove_unfinished(self, names: str, age: float) -> None:
        # obstore adds "#" and a number to the name while it writes, and lists no such file.
        found = list(self._folder.glob(f"{names}#[0-9]*"))
        if not found:
            return
        with tempfile.TemporaryFile(dir=self._folder) as new:  # the file system can have the clock of another machine
            before = os.fstat(new.fileno()).st_mtime - age
        for file in found:
            with suppress(FileNotFoundError):  # it has its name now
                if file.stat().st_mtime <= before:
                    file.unlink()

    def _sync(self, file: Path) -> None:
        _fsync(file)
        _fsync(file.parent)
        # Only once: to sync seven directories for each chunk takes ten times as long.
        made = [path for path in file.parents if path.is_relative_to(self._folder) and path != self._folder]
        new = [path for path in made if path not in self._durable]
        for path in new:
            _fsync(path.parent)
        self._durable.update(new)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
