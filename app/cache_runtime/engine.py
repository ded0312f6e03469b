"""What a cache driver does on its servers, and which drivers there are."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from app.cache_runtime.errors import NotServable
from app.cache_runtime.juicefs import JuiceFSEngine
from app.cache_runtime.options import CacheStatus, ClearOptions, Options, RmrOptions, SyncOptions, WarmupOptions
from app.cache_runtime.places import Places


class CacheEngine(Protocol):
    """Each returns what there is to tell of its success, or raises JobFailed; cancelled, it leaves nothing running."""

    async def do_sync_job(self, options: SyncOptions) -> str: ...

    async def do_warmup_job(self, options: WarmupOptions, job: str) -> str:
        """`job` is the name by which all servers of the set know it."""
        ...

    async def do_rmr_job(self, options: RmrOptions) -> str: ...

    async def do_clear_job(self, options: ClearOptions) -> str: ...

    async def create_cache_status(self) -> CacheStatus:
        """What cannot be found out is told in the status, never raised."""
        ...


_DEFAULT: Final = "juicefs"
_ENGINES: Final[Mapping[str, Callable[[Places], CacheEngine]]] = {"juicefs": JuiceFSEngine}


def engine_for(driver: str, places: Places) -> CacheEngine:
    """The empty name is the default's."""
    make = _ENGINES.get(driver or _DEFAULT)
    if make is None:
        raise NotServable(f"driver {driver} not found")
    return make(places)


async def perform(engine: CacheEngine, options: Options, job: str) -> str:
    match options:
        case SyncOptions():
            return await engine.do_sync_job(options)
        case WarmupOptions():
            return await engine.do_warmup_job(options, job)
        case RmrOptions():
            return await engine.do_rmr_job(options)
        case ClearOptions():
            return await engine.do_clear_job(options)
