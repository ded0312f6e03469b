"""Supervises one PostgreSQL server in one directory.

lock ─▶ end leftovers ─▶ initdb, once ─▶ start ─▶ probe until it answers ─▶ … ─▶ fast shutdown
"""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from app.embedded_postgres import leftovers
from app.embedded_postgres.binaries import EmbeddedPostgresError, PostgresBinaries
from app.embedded_postgres.directory import DATABASE, PORT, USER, OwnerLock, PostgresDirectory
from app.embedded_postgres.probe import answers

# Generous limits: a slow disk or a long recovery is not an error.
INITDB_SECONDS = 120.0
RECOVERY_SECONDS = 120.0
PROBE_SECONDS = 0.05
LIFE_SIGN_SECONDS = 0.25
# Fast shutdown, immediate shutdown, kill; with the seconds to wait after each.
STOP_STEPS = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0))
KILL_STEPS = STOP_STEPS[1:]
BUILTIN_LOCALE_SINCE = 17  # the first version that needs no locale of the operating system

SETTINGS: Mapping[str, str] = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "wal_level": "replica",
    "max_wal_senders": "0",  # it has no replicas
    "max_wal_size": "1GB",
    "jit": "off",  # short queries pay for compilation and gain nothing
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_destination": "stderr",
    "logging_collector": "off",
}


class EmbeddedPostgres:
    """A PostgreSQL server that ends with this process, with all its files in `data_dir`.

    It listens only on a Unix socket in a private directory. Only one task may start and stop it. `start` may be called
    again after the server has ended; the URL stays the same. The kernel ends the server with the thread that starts it,
    which is therefore the main thread or another one that lives as long.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        binaries: PostgresBinaries | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._directory = PostgresDirectory(data_dir.absolute())
        self._lock = OwnerLock(self._directory.path)
        self._given_binaries = binaries
        self._settings = {**SETTINGS, **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._identity = "self"

    @property
    def url(self) -> str:
        return self._directory.url

    @property
    def socket(self) -> Path:
        return self._directory.socket

    @property
    def log_file(self) -> Path:
        return self._directory.log

    @property
    def pid(self) -> int | None:
        """Return the pid of the postmaster, or None if it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> str:
        """Start the server unless it runs, and return the URL once it accepts connections."""
        if self.pid is not None:
            return self.url
        self._directory.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock.acquire()
        try:
            await self._start_owned(self._given_binaries or PostgresBinaries.from_wheel())
        except BaseException:
            self._abandon()
            raise
        return self.url

    async def stop(self) -> None:
        """Shut down: disconnect clients and write all data. Force the end if that takes too long."""
        await self._end(STOP_STEPS)

    async def kill(self) -> None:
        """End the server at once, as in a crash. The next start recovers."""
        await self._end(KILL_STEPS)

    async def wait(self) -> None:
        """Return when the server has ended for any reason."""
        while self.pid is not None:  # noqa: ASYNC110  no event tells of a child without binding it to a loop
            await asyncio.sleep(LIFE_SIGN_SECONDS)

    async def _start_owned(self, binaries: PostgresBinaries) -> None:
        directory = self._directory
        self._identity = binaries.identity_for(directory.path)
        directory.prepare(self._identity)
        for data in (directory.partial, directory.pgdata):
            await leftovers.end_leftovers(data)
        if await answers(directory.socket, user=USER):
            raise EmbeddedPostgresError(
                f"a PostgreSQL that this process cannot see answers on {directory.socket}: stop it first"
            )
        if not directory.pgdata.exists():
            await self._create_cluster(binaries)
        _check_version(directory.pgdata, binaries)
        self._clear_files()
        await self._serve(binaries)

    def _clear_files(self) -> None:
        """Delete the files that a dead server left. The caller makes sure that none runs."""
        socket = self._directory.socket
        for left in (self._directory.pgdata / "postmaster.pid", socket, socket.with_name(f"{socket.name}.lock")):
            left.unlink(missing_ok=True)

    async def _create_cluster(self, binaries: PostgresBinaries) -> None:
        """Create the database cluster and its database in another directory, and rename that when complete."""
        partial = self._directory.partial
        if partial.exists():
            await asyncio.to_thread(shutil.rmtree, partial)
        durable = self._settings["fsync"] != "off"
        if binaries.major >= BUILTIN_LOCALE_SINCE:
            locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        else:
            locale = ["--locale=C.UTF-8"]
        arguments = [f"--pgdata={partial}", f"--username={USER}", "--encoding=UTF8", *locale]
        arguments += ["--auth-local=trust", "--auth-host=reject", "--no-instructions"]
        await self._run(binaries, "initdb", arguments if durable else [*arguments, "--no-sync"])
        statement = f"CREATE DATABASE {DATABASE}\n".encode()
        single = ["--single", "-D", str(partial), *([] if durable else ["-F"]), "postgres"]
        await self._run(binaries, "postgres", single, stdin=statement)
        partial.rename(self._directory.pgdata)
        self._directory.persist_names()

    async def _run(
        self, binaries: PostgresBinaries, program: str, arguments: Sequence[str], stdin: bytes = b""
    ) -> None:
        """Run a program to its end. It ends with this process, or if this task is cancelled."""
        since = self._launch(binaries, program, arguments, death_signal=signal.SIGKILL, piped=True)
        process = self._process
        assert process is not None
        assert process.stdin is not None
        with process.stdin as pipe, suppress(BrokenPipeError):
            pipe.write(stdin)
        if not await leftovers.until(lambda: process.poll() is not None, INITDB_SECONDS):
            raise EmbeddedPostgresError(f"{program} did not end in {INITDB_SECONDS:.0f} s")
        self._process = None
        output = self._directory.log_tail(since)
        # A server in single-user mode reports what failed and still ends with status 0.
        if process.returncode != 0 or "ERROR:" in output:
            raise EmbeddedPostgresError(f"{program} failed with status {process.returncode}; its log:\n{output}")

    async def _serve(self, binaries: PostgresBinaries) -> None:
        self._configure()
        run = str(self._directory.run).replace('"', '""')
        arguments = ["-D", str(self._directory.pgdata), "-p", str(PORT), "-c", "listen_addresses="]
        arguments += ["-c", f'unix_socket_directories="{run}"', "-c", "unix_socket_permissions=0700"]
        since = self._launch(binaries, "postgres", arguments, death_signal=signal.SIGINT)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RECOVERY_SECONDS
        while not await answers(self._directory.socket, user=USER):
            if self.pid is None:
                raise EmbeddedPostgresError(f"PostgreSQL did not start; its log:\n{self._directory.log_tail(since)}")
            if loop.time() > deadline:
                raise EmbeddedPostgresError(
                    f"PostgreSQL accepted no connection within {RECOVERY_SECONDS:.0f} s; its log:\n"
                    f"{self._directory.log_tail(since)}"
                )
            await asyncio.sleep(PROBE_SECONDS)

    def _configure(self) -> None:
        """Write the settings to jobgate.conf, which postgresql.conf includes at its end."""
        config = self._directory.pgdata / "jobgate.conf"
        lines = ["# Written at every start; what ALTER SYSTEM sets outranks it."]
        lines += [f"{name} = '{value.replace(chr(39), chr(39) * 2)}'" for name, value in self._settings.items()]
        config.write_text("\n".join(lines) + "\n")
        self._directory.lend(config, self._identity)
        theirs = self._directory.pgdata / "postgresql.conf"
        include = f"include_if_exists '{config.name}'"
        if include not in theirs.read_text():
            with theirs.open("a") as configuration:
                configuration.write(f"\n{include}\n")

    def _launch(
        self,
        binaries: PostgresBinaries,
        program: str,
        arguments: Sequence[str],
        *,
        death_signal: signal.Signals,
        piped: bool = False,
    ) -> int:
        """Start a program, and return the offset in the log at which its output begins."""
        with self._directory.log.open("ab") as log:
            self._directory.lend(self._directory.log, self._identity)
            self._process = binaries.start(
                program,
                arguments,
                identity=self._identity,
                death_signal=death_signal,
                output=log,
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
            )
            return log.tell()

    async def _end(self, steps: Sequence[tuple[signal.Signals, float]]) -> None:
        process = self._process
        for number, seconds in steps if process is not None else ():
            if process is None or process.poll() is not None:
                break
            process.send_signal(number)
            await leftovers.until(lambda: process.poll() is not None, seconds)
        self._process = None
        self._lock.release()
        with suppress(OSError):  # the directory is missing, or contains another socket
            self._directory.run.rmdir()

    def _abandon(self) -> None:
        """End the process and release the lock after a start that failed or was cancelled."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGQUIT)
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._lock.release()


def _check_version(pgdata: Path, binaries: PostgresBinaries) -> None:
    try:
        version = (pgdata / "PG_VERSION").read_text().strip()
    except FileNotFoundError as error:
        raise EmbeddedPostgresError(
            f"{pgdata} holds no PostgreSQL data: remove it, or use another data directory"
        ) from error
    if version != str(binaries.major):
        raise EmbeddedPostgresError(
            f"{pgdata} holds data of PostgreSQL {version}, but this is PostgreSQL {binaries.major}: "
            "dump it with the old version and load it here, or use another data directory"
        )
