"""The jobs that a cache driver runs on a server, and the choice of the driver."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from cacheserver.config import RuntimeConfig
from cacheserver.engine.juicefs import JuiceFSEngine
from cacheserver.errors import StartupError
from cacheserver.options import (
    CacheInfo,
    ClearRequest,
    Options,
    Progress,
    RmrRequest,
    SyncRequest,
    WarmupRequest,
)


class CacheEngine(Protocol):
    """A cache driver on a server.

    Each job returns a message about its success, or raises JobFailed. After a cancellation no process keeps running.
    Meanwhile it counts in `progress` what it knows to be done.
    """

    async def do_sync_job(self, options: SyncRequest, progress: Progress) -> str: ...

    async def do_warmup_job(self, options: WarmupRequest, job: str, progress: Progress) -> str:
        """Warm up this server's part. `job` is the name of the job, the same on all servers of the set."""
        ...

    async def do_rmr_job(self, options: RmrRequest, progress: Progress) -> str: ...

    async def do_clear_job(self, options: ClearRequest, progress: Progress) -> str: ...

    async def create_cache_status(self) -> CacheInfo:
        """Measure the cache. Errors become part of the result and are never raised."""
        ...


_DEFAULT: Final = "juicefs"
_ENGINES: Final[Mapping[str, Callable[[RuntimeConfig], CacheEngine]]] = {"juicefs": JuiceFSEngine}


def engine_for(driver: str, config: RuntimeConfig) -> CacheEngine:
    """Return the driver of this name; an empty name stands for juicefs.

    Raises:
        StartupError: there is no such driver.
    """
    make = _ENGINES.get(driver or _DEFAULT)
    if make is None:
        raise StartupError(f"driver {driver} not found")
    return make(config)


async def perform(engine: CacheEngine, options: Options, job: str, progress: Progress) -> str:
    """Run the job of this name that the options describe, and return its message."""
    match options:
        case SyncRequest():
            return await engine.do_sync_job(options, progress)
        case WarmupRequest():
            return await engine.do_warmup_job(options, job, progress)
        case RmrRequest():
            return await engine.do_rmr_job(options, progress)
        case ClearRequest():
            return await engine.do_clear_job(options, progress)
