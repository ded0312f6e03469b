"""The jobs of the JuiceFS driver. They run the `juicefs` program on the mount that its CSI driver made."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from app.domain.cache.worker_hosts import wrong_hosts
from cacheserver.config import RuntimeConfig
from cacheserver.engine import cache_status
from cacheserver.engine.binary import juicefs_path
from cacheserver.errors import JobFailed
from cacheserver.files.removal import clear_paths, remove_paths
from cacheserver.files.threads import in_thread
from cacheserver.options import (
    CacheInfo,
    ClearRequest,
    Progress,
    RmrRequest,
    SyncRequest,
    WarmupRequest,
    flags,
)
from cacheserver.programs import commands, confinement
from cacheserver.programs.secrets import Scrubber, scrubber, sync_ends
from cacheserver.programs.source_hosts import NO_METADATA_KEYS, check_hosts
from cacheserver.programs.sync_access import check_destination, check_source, sync_access
from cacheserver.warmup.coordination import Warmup

_MESSAGE_LIMIT: Final = 2000  # characters of a result
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Lines in the output of juicefs 0.14.
_SUMMARY: Final = re.compile(r"Found: (\d+), (?:.*?copied: (\d+), )?.*?failed: (\d+)")
_COPIED: Final = re.compile(r"[\d/]+ [\d:.]+ juicefs\[\d+\] <DEBUG>: Copied .* \((\d{1,18}) bytes\) in ")
_VANISHED: Final = re.compile(r"Update mtime of .*: no such file or directory")
_LISTING_FAILED: Final = re.compile(r"Listing failed, stop syncing")
_SKIPPED: Final = re.compile(r"skip unreachable symlink: ")
_PARENT_STEP: Final = r"(^|/)\.\.(/|$)"
_WARMED: Final = re.compile(r"(\d+) paths are warmed up")
_NOISE: Final = re.compile(r"^[\d/]+ [\d:.]+ juicefs\[\d+\] |\x1b\[[\d;]*m")


class SyncReport:
    """What the output of `juicefs sync` reports.

    Its exit status cannot be trusted: it is 0 also when files failed or vanished, or when the source does not exist.
    Copied files are counted in `progress` if that is given. How many there will be is unknown, because juicefs lists
    the source while it copies.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress
        self.found: int | None = None
        self.failed = 0
        self.vanished = 0
        self.listing_failed = False
        self.skipped = 0

    def line(self, text: str) -> None:
        if match := _SUMMARY.search(text):
            self.found, self.failed = int(match[1]), int(match[3])
            if self.progress and match[2] is not None:
                self.progress.files_done = int(match[2])
        elif self.progress and (match := _COPIED.match(text)):
            self.progress.add(size=int(match[1]))
        self.vanished += bool(_VANISHED.search(text))
        self.listing_failed |= bool(_LISTING_FAILED.search(text))
        self.skipped += bool(_SKIPPED.search(text))

    def summary(self) -> str:
        parts = [] if self.found is None else [f"{self.found} files found"]
        if self.skipped:
            parts.append(f"symbolic links left out, which lead nowhere or elsewhere: {self.skipped}")
        return "; ".join(parts)

    def problem(self) -> str | None:
        """Return why the sync is not complete, or None if it is."""
        if self.failed:
            return f"{self.failed} of {self.found} files failed"
        if self.vanished:
            return f"{self.vanished} files vanished from the source or could not be read while they were copied"
        if self.listing_failed:
            return "the source could not be listed to its end"
        return None


class JuiceFSEngine:
    """The `CacheEngine` for JuiceFS."""

    def __init__(self, config: RuntimeConfig) -> None:
        self._config = config

    async def do_sync_job(self, options: SyncRequest, progress: Progress) -> str:
        scrub = scrubber((options.source, options.destination))
        # A dry run copies nothing, and juicefs does not tell what its workers on other hosts copy.
        report = SyncReport(None if options.dry or options.worker else progress)
        try:
            return await self._sync(options, scrub, report)
        except JobFailed as error:
            raise JobFailed(_message(scrub, str(error))) from None

    async def _sync(self, options: SyncRequest, scrub: Scrubber, report: SyncReport) -> str:
        for uri in (options.source, options.destination):
            if not _URI.match(uri):
                raise JobFailed("source and destination must be URIs with ://")
        if options.worker and (wrong := wrong_hosts(options.worker)):
            raise JobFailed(wrong)
        source, destination = sync_ends(options.source, options.destination)
        await in_thread(lambda _: check_destination(options.destination, self._config))
        await in_thread(lambda _: check_hosts(options))
        await in_thread(lambda _: check_source(options.source, self._config, options.allowed_directories))
        program = juicefs_path()
        # juicefs tells each copied file only with --verbose.
        verbose = ["--verbose"] if report.progress else []
        command = [str(program), *verbose, "sync", *flags(_without_parents(options)), source.uri, destination.uri]
        if confinement.version():
            ends = (options.source, options.destination)
            access = await in_thread(
                lambda _: sync_access(*ends, self._config, program, removes_source=options.delete_src)
            )
            command = confinement.confine(command, reads=access.reads, writes=access.writes)
        try:
            environment = {**NO_METADATA_KEYS, **source.environment, **destination.environment}
            summary = await self._run("sync", command, scrub, environment, report.line)
        except JobFailed as error:
            raise JobFailed("\n".join(filter(None, (report.problem(), str(error))))) from None
        # To juicefs, a source that vanishes during the sync is an empty one.
        await in_thread(lambda _: check_source(options.source, self._config, options.allowed_directories))
        if problem := report.problem():
            raise JobFailed(f"{problem}\n{summary}")
        return report.summary()

    async def do_warmup_job(self, options: WarmupRequest, job: str, progress: Progress) -> str:
        data_dir = self._data_dir()
        if self._config.index is None:
            raise JobFailed("this server has no index: its host name must end in -<number>")

        async def warm(paths: Path) -> None:
            await self._warm(paths, options.threads)

        config = self._config
        warmup = Warmup(data_dir, self._config.index, options, job, config.warmup, warm, config.scratch, progress)
        return await warmup.run()

    async def _warm(self, paths: Path, threads: int) -> None:
        warmed: list[int] = []

        def line(text: str) -> None:
            warmed.extend(int(match[1]) for match in [_WARMED.search(text)] if match)

        given = [f"--threads={threads}"] if threads else []
        arguments = ["warmup", f"--file={paths}", *given]
        summary = await self._juicefs(arguments, line)
        # juicefs ends with status 0 also if it has warmed up none of the paths.
        if warmed == [0]:
            raise JobFailed(_message(Scrubber(), f"no path of the list was warmed up\n{summary}"))

    async def do_rmr_job(self, options: RmrRequest, progress: Progress) -> str:
        data_dir = self._data_dir()
        if not options.paths:
            raise JobFailed("option of paths cannot be empty")
        await in_thread(lambda stop: remove_paths(data_dir, options.paths, stop, progress))
        return ""

    async def do_clear_job(self, options: ClearRequest, progress: Progress) -> str:
        bases = self._config.cache_dirs
        paths = options.paths or tuple(f"{base}/*" for base in bases)
        await in_thread(lambda stop: clear_paths(bases, paths, stop, progress))
        return ""

    async def create_cache_status(self) -> CacheInfo:
        return await cache_status.collect(self._config, self._info)

    async def _info(self, path: Path) -> str:
        lines: list[str] = []

        def line(text: str) -> None:
            if len(lines) < cache_status.INFO_LINES:
                lines.append(text)

        await self._juicefs(["info", str(path)], line)
        return "\n".join(lines)

    async def _juicefs(self, arguments: list[str], on_line: Callable[[str], None]) -> str:
        return await self._run(arguments[0], [str(juicefs_path()), *arguments], Scrubber(), {}, on_line)

    async def _run(
        self,
        name: str,
        command: list[str],
        scrub: Scrubber,
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
    ) -> str:
        """Run a program and return a summary of its output.

        Raises:
            JobFailed: the exit status is not 0; the message contains the summary.
        """
        try:
            code, summary = await commands.run(command, {**self._config.environment, **environment}, on_line)
        except OSError as error:
            raise JobFailed(f"juicefs cannot be run: {error.strerror}") from None
        if code:
            outcome = f"ended with status {code}" if code > 0 else f"was killed by signal {-code}"
            raise JobFailed(_message(scrub, f"juicefs {name} {outcome}\n{summary}"))
        return summary

    def _data_dir(self) -> Path:
        if self._config.data_dir is None:
            raise JobFailed("option dataDir not set")
        return self._config.data_dir


def _message(scrub: Scrubber, text: str) -> str:
    """Scrub the text, then shorten it. In the other order, half a secret could remain."""
    message = "; ".join(_NOISE.sub("", line).strip() for line in scrub(text).splitlines() if line.strip())
    return message if len(message) <= _MESSAGE_LIMIT else f"{message[: _MESSAGE_LIMIT - 1]}…"


def _without_parents(options: SyncRequest) -> SyncRequest:
    """Exclude keys with .. components if the kernel cannot confine juicefs."""
    if confinement.version():
        return options
    pattern = f"({options.exclude})|{_PARENT_STEP}" if options.exclude else _PARENT_STEP
    return msgspec.structs.replace(options, exclude=pattern)
