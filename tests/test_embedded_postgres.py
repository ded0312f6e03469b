"""The embedded PostgreSQL after the death of its owner and at the next start, with real servers and signals."""

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import asyncpg
import pytest

from app.embedded_postgres.binaries import EmbeddedPostgresError, PostgresBinaries
from app.embedded_postgres.leftovers import processes_in, until
from app.embedded_postgres.server import EmbeddedPostgres

REPOSITORY = Path(__file__).parents[1]
SUPERVISOR = REPOSITORY / "app" / "embedded_postgres" / "server.py"
FAST = {"fsync": "off"}
DEADLINE = 60.0

OWNER = """
import asyncio, sys
from pathlib import Path
from app.embedded_postgres.binaries import PostgresBinaries
from app.embedded_postgres.server import EmbeddedPostgres

async def main():
    binaries = PostgresBinaries.at(Path(sys.argv[2]))
    async with EmbeddedPostgres(Path(sys.argv[1]), binaries=binaries, settings={"fsync": "off"}) as server:
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@pytest.fixture
def own() -> "Iterator[type[Owner]]":
    """A function that starts owners, which end with the test."""
    Owner.started.clear()
    yield Owner
    for owner in Owner.started:
        owner.sigkill()


class Owner:
    """A supervisor in a separate process, which tests kill."""

    started: ClassVar[list["Owner"]] = []

    def __init__(self, directory: Path, *, command: Sequence[str] = (sys.executable,)) -> None:
        self.process = subprocess.Popen(
            [*command, "-c", OWNER, directory, PostgresBinaries.from_wheel().directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd="/",
        )
        self.started.append(self)

    async def url(self) -> str:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(asyncio.to_thread(self.process.stdout.readline), DEADLINE)
        return line.decode().strip()

    def sigkill(self) -> None:
        self.process.kill()
        self._reap()

    def end_politely(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self._reap()

    def _reap(self) -> int:
        with self.process:
            return self.process.wait(timeout=DEADLINE)


async def write_row(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE TABLE IF NOT EXISTS kept (n int); INSERT INTO kept VALUES (1)")
    finally:
        await connection.close()


async def count_rows(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM kept"))
    finally:
        await connection.close()


async def gone(directory: Path) -> bool:
    return await until(lambda: not processes_in(directory), DEADLINE)


async def test_data_and_url_survive_a_restart(postgres_directory: Path) -> None:
    async with EmbeddedPostgres(postgres_directory / "new" / "postgres", settings=FAST) as server:
        first_url, first_pid = server.url, server.pid
        assert await server.start() == first_url
        assert server.pid == first_pid
        await write_row(first_url)
    async with EmbeddedPostgres(postgres_directory / "new" / "postgres", settings=FAST) as server:
        assert server.url == first_url
        assert await count_rows(server.url) == 1


async def test_stop_leaves_no_process_and_no_zombie(postgres_directory: Path) -> None:
    server = EmbeddedPostgres(postgres_directory, settings=FAST)
    await server.start()
    pid = server.pid
    client = await asyncpg.connect(server.url)
    await server.stop()
    client.terminate()
    assert server.pid is None
    assert not Path(f"/proc/{pid}").exists()
    assert processes_in(postgres_directory / "pgdata") == []
    await server.stop()


async def test_the_server_is_durable_private_utf8_and_has_its_settings(postgres_directory: Path) -> None:
    async with EmbeddedPostgres(postgres_directory, settings={"work_mem": "5MB", "application_name": "it's"}) as server:
        connection = await asyncpg.connect(server.url)
        rows = await connection.fetch("SELECT name, current_setting(name) AS value FROM pg_settings")
        await connection.close()
        assert (postgres_directory / "run").stat().st_mode & 0o777 == 0o700
    shown = {row["name"]: row["value"] for row in rows}
    wanted = {
        "fsync": "on",
        "synchronous_commit": "on",
        "jit": "off",
        "max_connections": "100",
        "server_encoding": "UTF8",
        "listen_addresses": "",
        "work_mem": "5MB",
        "application_name": "it's",
    }
    assert {name: shown[name] for name in wanted} == wanted


async def test_sigkill_of_the_owner_leaves_nothing_running(postgres_directory: Path, own: type[Owner]) -> None:
    owner = own(postgres_directory)
    url = await owner.url()
    await write_row(url)
    assert processes_in(postgres_directory / "pgdata")
    owner.sigkill()
    assert await gone(postgres_directory / "pgdata")
    assert (postgres_directory / "server.log").read_text().rstrip().endswith("database system is shut down")
    async with EmbeddedPostgres(postgres_directory, settings=FAST) as server:
        assert await count_rows(server.url) == 1


async def test_a_start_right_after_the_owner_was_killed(postgres_directory: Path, own: type[Owner]) -> None:
    owner = own(postgres_directory)
    await write_row(await owner.url())
    owner.sigkill()
    async with EmbeddedPostgres(postgres_directory, settings=FAST) as server:
        assert await count_rows(server.url) == 1


async def test_a_server_that_outlived_its_owner_is_ended(postgres_directory: Path) -> None:
    outlived = EmbeddedPostgres(postgres_directory, settings=FAST)
    await write_row(await outlived.start())
    old = outlived.pid
    assert old is not None
    outlived._lock.release()  # what the kernel does when an owner dies
    async with EmbeddedPostgres(postgres_directory, settings=FAST) as server:
        assert server.pid != old
        assert old not in processes_in(postgres_directory / "pgdata")
        assert await count_rows(server.url) == 1
    await outlived.stop()


async def test_a_stale_pid_file_that_names_an_unrelated_process(postgres_directory: Path) -> None:
    async with EmbeddedPostgres(postgres_directory, settings=FAST) as server:
        pid_file = (postgres_directory / "pgdata" / "postmaster.pid").read_text()
        socket_lock = (postgres_directory / "run" / ".s.PGSQL.5432.lock").read_text()
        await write_row(server.url)
    stranger = f"{os.getpid()}\n"
    (postgres_directory / "pgdata" / "postmaster.pid").write_text(stranger + pid_file.split("\n", 1)[1])
    (postgres_directory / "run").mkdir(mode=0o700, exist_ok=True)
    (postgres_directory / "run" / ".s.PGSQL.5432.lock").write_text(stranger + socket_lock.split("\n", 1)[1])
    async with EmbeddedPostgres(postgres_directory, settings=FAST) as server:
        assert await count_rows(server.url) == 1


async def test_sigkill_of_the_postmaster_then_start(postgres_directory: Path) -> None:
    server = EmbeddedPostgres(postgres_directory, settings=FAST)
    await write_row(await server.start())
    client = await asyncpg.connect(server.url)
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    await asyncio.wait_for(server.wait(), DEADLINE)
    assert await count_rows(await server.start()) == 1
    client.terminate()
    await server.stop()


async def test_kill_is_a_crash_that_the_next_start_recovers(postgres_directory: Path) -> None:
    server = EmbeddedPostgres(postgres_directory)
    await write_row(await server.start())
    await server.kill()
    assert processes_in(postgres_directory / "pgdata") == []
    assert await count_rows(await server.start()) == 1
    assert "was not properly shut down" in (postgres_directory / "server.log").read_text()
    await server.stop()


@pytest.mark.parametrize("sign", ["PG_VERSION", "base/1/PG_VERSION", "base/4/PG_VERSION"])
async def test_sigkill_during_initdb_leaves_nothing_half_done(
    postgres_directory: Path, sign: str, own: type[Owner]
) -> None:
    owner = own(postgres_directory)
    assert await until((postgres_directory / "initdb.partial" / sign).exists, DEADLINE)
    owner.sigkill()
    async with EmbeddedPostgres(postgres_directory, settings=FAST) as server:
        await write_row(server.url)
    assert not (postgres_directory / "initdb.partial").exists()


async def test_a_cancelled_first_start_leaves_no_process_and_no_lock(postgres_directory: Path) -> None:
    server = EmbeddedPostgres(postgres_directory, settings=FAST)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.start())
        assert await until((postgres_directory / "initdb.partial" / "PG_VERSION").exists, DEADLINE)
        task.cancel()
    assert await gone(postgres_directory / "initdb.partial")
    async with EmbeddedPostgres(postgres_directory, settings=FAST) as other:
        await write_row(other.url)


async def test_a_second_owner_is_refused_with_the_pid_of_the_first(postgres_directory: Path, own: type[Owner]) -> None:
    owner = own(postgres_directory)
    url = await owner.url()
    with pytest.raises(EmbeddedPostgresError, match=rf"in use by another process \(pid {owner.process.pid}\)"):
        await EmbeddedPostgres(postgres_directory, settings=FAST).start()
    await write_row(url)
    assert owner.end_politely() == 0
    assert processes_in(postgres_directory / "pgdata") == []


async def test_a_path_too_long_for_a_socket(postgres_directory: Path) -> None:
    deep = postgres_directory / ("d" * 60) / ("e" * 60) / 'it\'s; a "directory", and Größe'
    async with EmbeddedPostgres(deep, settings=FAST) as server:
        await write_row(server.url)
        socket_directory = server.socket.parent
        assert socket_directory.stat().st_mode & 0o777 == 0o700
    assert not socket_directory.exists()
    async with EmbeddedPostgres(deep, settings=FAST) as server:
        assert await count_rows(server.url) == 1


async def test_a_socket_directory_that_other_users_can_enter_is_refused(postgres_directory: Path) -> None:
    (postgres_directory / "run").mkdir(mode=0o755, parents=True)
    with pytest.raises(EmbeddedPostgresError, match="nobody else can enter"):
        await EmbeddedPostgres(postgres_directory, settings=FAST).start()


async def test_data_of_another_major_version_is_refused(postgres_directory: Path) -> None:
    (postgres_directory / "pgdata").mkdir(parents=True)
    with pytest.raises(EmbeddedPostgresError, match="holds no PostgreSQL data"):
        await EmbeddedPostgres(postgres_directory).start()
    (postgres_directory / "pgdata" / "PG_VERSION").write_text("9\n")
    with pytest.raises(EmbeddedPostgresError, match=r"data of PostgreSQL 9, but this is PostgreSQL 18"):
        await EmbeddedPostgres(postgres_directory).start()


async def test_a_failed_start_shows_the_log_of_the_server(postgres_directory: Path) -> None:
    server = EmbeddedPostgres(postgres_directory, settings={**FAST, "shared_buffers": "plenty"})
    with pytest.raises(EmbeddedPostgresError, match='invalid value for parameter "shared_buffers": "plenty"'):
        await server.start()
    async with EmbeddedPostgres(postgres_directory, settings=FAST) as mended:
        await write_row(mended.url)


def test_a_directory_without_programs_is_named(postgres_directory: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match="there is no PostgreSQL server in"):
        PostgresBinaries.at(postgres_directory)


@pytest.fixture
def nobodys() -> Iterator[Path]:
    """A directory of the user nobody, who can access it and the programs."""
    if os.geteuid() != 0:
        pytest.skip("only root can act as another user: run the test as root")
    nobody = pwd.getpwnam("nobody")
    directory = Path(tempfile.mkdtemp(prefix="jobgate-nobody-"))
    os.chown(directory, nobody.pw_uid, nobody.pw_gid)
    program = PostgresBinaries.from_wheel().directory / "postgres"
    try:
        if subprocess.run([*as_nobody(), program, "--version"], capture_output=True, check=False).returncode:
            pytest.skip(f"the user nobody cannot run {program}: put the virtual environment where all users may read")
        yield directory
    finally:
        shutil.rmtree(directory)


def as_nobody() -> list[str]:
    nobody = pwd.getpwnam("nobody")
    become = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
    # setpriv still has root's powers when it looks for its program; only what that one starts is nobody's.
    return [*become, "/bin/sh", "-c", 'exec "$0" "$@"']


def python_of_nobody() -> str:
    """A Python that, as the user nobody, can read the supervisor, which needs only the standard library."""
    check = f"import sys; open({str(SUPERVISOR)!r}).close(); sys.exit(sys.version_info < (3, 11))"
    for python in (sys.executable, "/usr/bin/python3"):
        run = subprocess.run([*as_nobody(), python, "-B", "-c", check], capture_output=True, check=False, cwd="/")
        if run.returncode == 0:
            return python
    pytest.skip("as the user nobody, no Python 3.11 can read this checkout: put it where all users may read")


async def test_an_ordinary_user_owns_a_server(nobodys: Path, own: type[Owner]) -> None:
    command = [*as_nobody(), python_of_nobody()]
    owner = own(nobodys, command=command)
    assert await owner.url()
    assert (nobodys / "pgdata").stat().st_uid == nobodys.stat().st_uid
    owner.sigkill()
    assert await gone(nobodys / "pgdata")
    again = own(nobodys, command=command)
    assert await again.url()
    assert again.end_politely() == 0
    assert processes_in(nobodys / "pgdata") == []


async def test_root_serves_an_ordinary_users_data_as_that_user(nobodys: Path, own: type[Owner]) -> None:
    owner = own(nobodys)
    url = await owner.url()
    await write_row(url)
    served = processes_in(nobodys / "pgdata")
    assert {Path(f"/proc/{pid}").stat().st_uid for pid in served} == {nobodys.stat().st_uid}
    owner.sigkill()
    assert await gone(nobodys / "pgdata")
    async with EmbeddedPostgres(nobodys, settings=FAST) as server:
        assert await count_rows(server.url) == 1
    strangers = [path for path in nobodys.rglob("*") if path.lstat().st_uid != nobodys.stat().st_uid]
    assert strangers == [nobodys / "lock"]


@pytest.fixture
def no_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forbid namespaces, as the seccomp profile of a container does."""
    monkeypatch.setattr(PostgresBinaries, "_namespaces_work", lambda _: False)


@pytest.mark.usefixtures("no_namespaces")
async def test_without_namespaces_root_lends_its_directory_to_nobody(nobodys: Path) -> None:
    nobody = nobodys.stat().st_uid
    os.chown(nobodys, 0, 0)
    async with EmbeddedPostgres(nobodys, settings=FAST) as server:
        await write_row(server.url)
        assert {Path(f"/proc/{pid}").stat().st_uid for pid in processes_in(nobodys / "pgdata")} == {nobody}
    async with EmbeddedPostgres(nobodys, settings=FAST) as server:
        assert await count_rows(server.url) == 1


@pytest.mark.usefixtures("no_namespaces")
async def test_a_directory_that_nobody_cannot_reach_is_named_and_its_mode_kept(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs its server as another user: run the test as root")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(EmbeddedPostgresError, match=r"the user nobody cannot enter .*: run as an ordinary user"):
        await EmbeddedPostgres(closed / "postgres").start()
    assert closed.stat().st_mode & 0o777 == 0o700
