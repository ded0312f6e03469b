"""The JuiceFS driver's work, done by the `juicefs` program and on the mount that its CSI driver made."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from app.cache_runtime import cache_status, commands, confinement
from app.cache_runtime.binary import juicefs_path
from app.cache_runtime.errors import JobFailed
from app.cache_runtime.local_ends import check_destination, check_source, reach
from app.cache_runtime.options import CacheStatus, ClearOptions, RmrOptions, SyncOptions, WarmupOptions, flags
from app.cache_runtime.places import Places
from app.cache_runtime.removal import clear_paths, remove_paths
from app.cache_runtime.secrets import Scrubber, endpoints, scrubber
from app.cache_runtime.threads import in_thread
from app.cache_runtime.warmup import Warmup
from app.domain.cache.specs.worker_hosts import wrong_hosts

_MESSAGE_LIMIT: Final = 2000
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SUMMARY: Final = re.compile(r"Found: (\d+), .*?failed: (\d+)")
_VANISHED: Final = re.compile(r"Update mtime of .*: no such file or directory")
_BROKEN_OFF: Final = re.compile(r"Listing failed, stop syncing")
_SKIPPED: Final = re.compile(r"skip unreachable symlink: ")
_CLIMBS: Final = r"(^|/)\.\.(/|$)"
_WARMED: Final = re.compile(r"(\d+) paths are warmed up")
_NOISE: Final = re.compile(r"^[\d/]+ [\d:.]+ juicefs\[\d+\] |\x1b\[[\d;]*m")


class SyncReport:
    """What `juicefs sync` said. Its exit status is 0 also when files failed, were gone, or the source was not there."""

    def __init__(self) -> None:
        self.found: int | None = None
        self.failed = 0
        self.vanished = 0
        self.broken_off = False
        self.skipped = 0

    def line(self, text: str) -> None:
        if match := _SUMMARY.search(text):
            self.found, self.failed = int(match[1]), int(match[2])
        self.vanished += bool(_VANISHED.search(text))
        self.broken_off |= bool(_BROKEN_OFF.search(text))
        self.skipped += bool(_SKIPPED.search(text))

    def told(self) -> str:
        said = [] if self.found is None else [f"{self.found} files found"]
        if self.skipped:
            said.append(f"symbolic links left out, which lead nowhere or elsewhere: {self.skipped}")
        return "; ".join(said)

    def problem(self) -> str | None:
        if self.failed:
            return f"{self.failed} of {self.found} files failed"
        if self.vanished:
            return f"{self.vanished} files vanished from the source or could not be read while they were copied"
        if self.broken_off:
            return "the source could not be listed to its end"
        return None


class JuiceFSEngine:
    """`CacheEngine` for juicefs."""

    def __init__(self, places: Places) -> None:
        self._places = places

    async def do_sync_job(self, options: SyncOptions) -> str:
        scrub = scrubber((options.source, options.destination))
        try:
            return await self._sync(options, scrub)
        except JobFailed as error:
            raise JobFailed(_message(scrub, str(error))) from None

    async def _sync(self, options: SyncOptions, scrub: Scrubber) -> str:
        for uri in (options.source, options.destination):
            if not _URI.match(uri):
                raise JobFailed("source and destination must be URIs with ://")
        if options.worker and (wrong := wrong_hosts(options.worker)):
            raise JobFailed(wrong)
        source, destination = endpoints(options.source, options.destination)
        await in_thread(lambda _: check_destination(options.destination, self._places))
        await in_thread(lambda _: check_source(options.source, self._places))
        report = SyncReport()
        program = juicefs_path()
        command = [str(program), "sync", *flags(_without_parents(options)), source.uri, destination.uri]
        if confinement.version():
            ends = (options.source, options.destination)
            held = await in_thread(lambda _: reach(*ends, self._places, program, removes_source=options.delete_src))
            command = confinement.confined(command, reads=held.reads, writes=held.writes)
        try:
            environment = {**source.environment, **destination.environment}
            summary = await self._run("sync", command, scrub, environment, report.line)
        except JobFailed as error:
            raise JobFailed("\n".join(filter(None, (report.problem(), str(error))))) from None
        await in_thread(lambda _: check_source(options.source, self._places))
        if problem := report.problem():
            raise JobFailed(f"{problem}\n{summary}")
        return report.told()

    async def do_warmup_job(self, options: WarmupOptions, job: str) -> str:
        data_dir = self._data_dir()
        if self._places.server is None:
            raise JobFailed("this server has no number: its host name must end in -<number>")

        async def warm(paths: Path) -> None:
            await self._warm(paths, options.threads)

        part = Warmup(data_dir, self._places.server, options, job, self._places.warmup, warm, self._places.scratch)
        return await part.run()

    async def _warm(self, paths: Path, threads: int) -> None:
        warmed: list[int] = []

        def line(text: str) -> None:
            warmed.extend(int(match[1]) for match in [_WARMED.search(text)] if match)

        given = [f"--threads={threads}"] if threads else []
        arguments = ["warmup", f"--file={paths}", *given]
        summary = await self._juicefs(arguments, Scrubber(), {}, line)
        if warmed == [0]:
            raise JobFailed(_message(Scrubber(), f"no path of the list was warmed up\n{summary}"))

    async def do_rmr_job(self, options: RmrOptions) -> str:
        data_dir = self._data_dir()
        if not options.paths:
            raise JobFailed("option of paths cannot be empty")
        await in_thread(lambda stop: remove_paths(data_dir, options.paths, stop))
        return ""

    async def do_clear_job(self, options: ClearOptions) -> str:
        bases = self._places.cache_dirs
        paths = options.paths or tuple(f"{base}/*" for base in bases)
        await in_thread(lambda stop: clear_paths(bases, paths, stop))
        return ""

    async def create_cache_status(self) -> CacheStatus:
        return await cache_status.collected(self._places, self._info)

    async def _info(self, path: Path) -> str:
        lines: list[str] = []

        def line(text: str) -> None:
            if len(lines) < cache_status.INFO_LINES:
                lines.append(text)

        await self._juicefs(["info", str(path)], Scrubber(), {}, line)
        return "\n".join(lines)

    async def _juicefs(
        self, arguments: list[str], scrub: Scrubber, environment: Mapping[str, str], on_line: Callable[[str], None]
    ) -> str:
        return await self._run(arguments[0], [str(juicefs_path()), *arguments], scrub, environment, on_line)

    async def _run(
        self,
        name: str,
        command: list[str],
        scrub: Scrubber,
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
    ) -> str:
        """A summary of what it said; a status other than 0 is a failure with it."""
        try:
            code, summary = await commands.run(command, {**self._places.environment, **environment}, on_line)
        except OSError as error:
            raise JobFailed(f"juicefs cannot be run: {error.strerror}") from None
        if code:
            ended = f"ended with status {code}" if code > 0 else f"was killed by signal {-code}"
            raise JobFailed(_message(scrub, f"juicefs {name} {ended}\n{summary}"))
        return summary

    def _data_dir(self) -> Path:
        if self._places.data_dir is None:
            raise JobFailed("option dataDir not set")
        return self._places.data_dir


def _message(scrub: Scrubber, text: str) -> str:
    """Scrubbed first and cut afterwards, or half a secret could remain."""
    told = "; ".join(_NOISE.sub("", line).strip() for line in scrub(text).splitlines() if line.strip())
    return told if len(told) <= _MESSAGE_LIMIT else f"{told[: _MESSAGE_LIMIT - 1]}…"


def _without_parents(options: SyncOptions) -> SyncOptions:
    """Where the kernel cannot hold juicefs to its places, keys that climb out of them are left out."""
    if confinement.version():
        return options
    pattern = f"({options.exclude})|{_CLIMBS}" if options.exclude else _CLIMBS
    return msgspec.structs.replace(options, exclude=pattern)
