"""The measurement of a cache: what counts, and that a failed part does not hide the others."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cacheserver.config import RuntimeConfig
from cacheserver.engine.cache_status import collect
from cacheserver.errors import JobFailed

Info = Callable[[Path], Awaitable[str]]


@pytest.fixture
def config(tmp_path: Path) -> RuntimeConfig:
    """A volume with hidden entries at its top and deeper, and a cache of seven bytes."""
    for name in ("data/shown/.deep", "data/.warmup/file.0", "data/.accesslog", "cache/chunk"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"seven b")
    (tmp_path / "data" / ".file").write_bytes(b"four")
    return RuntimeConfig(tmp_path / "data", (tmp_path / "cache",))


def info(**figures: tuple[int, int]) -> Info:
    async def answer(path: Path) -> str:
        files, length = figures[path.name.removeprefix(".")]
        return f"files: {files}\nlength: {length}"

    return answer


async def test_dot_files_and_directories_at_the_top_do_not_count(config: RuntimeConfig) -> None:
    """The sums do not contain JuiceFS' own files."""
    status = await collect(config, info(data=(10, 1000), warmup=(3, 60)))
    assert (status.total_files, status.total_size) == ("6", "936")
    assert (status.cached_size, status.error_massage) == ("7", "")


async def test_an_empty_cache_differs_from_an_unknown_one(config: RuntimeConfig) -> None:
    (config.cache_dirs[0] / "chunk").unlink()
    assert (await collect(config, info(data=(0, 0), warmup=(0, 0)))).cached_size == "0"
    assert (await collect(RuntimeConfig(config.data_dir), info(data=(0, 0), warmup=(0, 0)))).cached_size == ""


async def test_missing_directories_are_reported_and_each_error_once() -> None:
    status = await collect(RuntimeConfig(), info())
    assert status.error_massage == "option dataDir not set;option cacheDirs not set"
    assert status.total_size == status.cached_size == status.disk_size == ""


async def test_a_failed_part_leaves_the_others(config: RuntimeConfig) -> None:
    async def broken(path: Path) -> str:
        raise JobFailed(f"{path.name} is no\nJuiceFS")

    status = await collect(config, broken)
    assert (status.total_size, status.total_files) == ("", "")
    assert status.error_massage == "data is no JuiceFS"
    assert status.cached_size == "7"
    assert int(status.disk_size) >= int(status.disk_used) > 0


async def test_a_part_that_hangs_times_out(config: RuntimeConfig) -> None:
    async def endless(path: Path) -> str:
        await asyncio.Event().wait()
        return path.name

    impatient = RuntimeConfig(config.data_dir, config.cache_dirs, timeout=0.2)
    status = await collect(impatient, endless)
    assert status.error_massage == "the cache could not be measured within 0.2 seconds"
    assert status.cached_size == "7"
