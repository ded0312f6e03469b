"""Every command for operators reports a known fault in one line and with status 2, never with a traceback.

commands  serve (one process, several), migrate, token, uninstall, dev, demo, devcluster
faults    of the URL, the server, the role, the schema, the kubeconfig, the cluster, the machine
"""

import os
import socket
import struct
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.clusters.cluster import as_gateway
from tests.support.clusters.kube import Cluster
from tests.support.gateways.forked_commands import jobgate
from tests.support.machine.ports import kept_port
from tests.support.postgres import execute
from tests.support.schemas import set_revision

SERVE = ("serve", "--port", "0")
WORKERS = ("serve", "--port", "0", "--workers", "2")
MIGRATE = ("migrate",)
TOKENS = (("token", "list"), ("token", "create", "ci", "--all-namespaces"), ("token", "revoke", "no-such"))
UNINSTALL = ("uninstall", "--yes")
# One of each kind: the commands for tokens connect alike.
OF_DATABASE = (SERVE, MIGRATE, TOKENS[0], UNINSTALL)


def assert_reported(ran: "subprocess.CompletedProcess[str]", says: str) -> None:
    """Require one line on standard error, which contains `says` and no password."""
    assert "Traceback" not in ran.stderr + ran.stdout, ran.stderr
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
    # Log lines of the text format begin with their time.
    reported = [line for line in ran.stderr.splitlines() if not line.startswith("20")]
    assert len(reported) == 1, ran.stderr
    assert reported[0].startswith("jobgate: "), ran.stderr
    assert says in reported[0], ran.stderr
    assert "secret" not in ran.stderr
    assert "sec/ret" not in ran.stderr


@contextmanager
def refusing_server(code: str, message: str) -> Iterator[str]:
    """A PostgreSQL that answers each session with this error, and its URL."""
    fields = b"".join(
        key + value.encode() + b"\0" for key, value in ((b"S", "FATAL"), (b"V", "FATAL"), (b"C", code), (b"M", message))
    )
    error = b"E" + struct.pack("!I", len(fields) + 5) + fields + b"\0"
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    first = connection.recv(4096)
                    if first[4:8] == struct.pack("!I", 80877103):  # a request for TLS
                        connection.sendall(b"N")
                        connection.recv(4096)
                    connection.sendall(error)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"postgresql://ci:secret@127.0.0.1:{listening.getsockname()[1]}/jobs"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


WRONG_PASSWORD = ("28P01", 'password authentication failed for user "ci"')


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        *((arguments, *WRONG_PASSWORD) for arguments in OF_DATABASE),
        (SERVE, "3D000", 'database "jobs" does not exist'),
        (MIGRATE, "53300", "too many clients already"),
        (TOKENS[0], "57P03", "the database system is starting up"),
    ],
    ids=str,
)
def test_an_answer_of_the_server_at_the_sign_in(
    arguments: Sequence[str], code: str, message: str, tmp_path: Path, embedded_cluster: Cluster
) -> None:
    with refusing_server(code, message) as url:
        kubeconfig = str(as_gateway(embedded_cluster.kubeconfig))
        ran = jobgate(*arguments, home=tmp_path, JOBGATE_DATABASE_URL=url, JOBGATE_KUBECONFIG=kubeconfig)
    assert_reported(ran, message)


@pytest_asyncio.fixture
async def refused_role(database_url: str) -> AsyncIterator[str]:
    """The URL of the database for a role that may do nothing in it."""
    role = f"refused_{os.getpid()}"
    await execute(database_url, f"CREATE ROLE {role} LOGIN")
    yield database_url.replace("jobgate@", f"{role}@", 1)
    await execute(database_url, f"DROP ROLE {role}")


@pytest_asyncio.fixture
async def reading_role(database_url: str) -> AsyncIterator[str]:
    """The URL of the database for a role that may only read."""
    role = f"reading_{os.getpid()}"
    await execute(database_url, f"CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
    yield database_url.replace("jobgate@", f"{role}@", 1)
    await execute(database_url, f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.parametrize("arguments", OF_DATABASE, ids=" ".join)
def test_a_role_without_rights(
    arguments: Sequence[str], refused_role: str, tmp_path: Path, embedded_cluster: Cluster
) -> None:
    kubeconfig = str(as_gateway(embedded_cluster.kubeconfig))
    ran = jobgate(*arguments, home=tmp_path, JOBGATE_DATABASE_URL=refused_role, JOBGATE_KUBECONFIG=kubeconfig)
    assert_reported(ran, "permission denied for table")


@pytest.mark.parametrize("arguments", [SERVE, TOKENS[1], TOKENS[2], UNINSTALL], ids=" ".join)
def test_a_role_that_may_only_read(
    arguments: Sequence[str], reading_role: str, tmp_path: Path, embedded_cluster: Cluster
) -> None:
    kubeconfig = str(as_gateway(embedded_cluster.kubeconfig))
    ran = jobgate(*arguments, home=tmp_path, JOBGATE_DATABASE_URL=reading_role, JOBGATE_KUBECONFIG=kubeconfig)
    assert_reported(ran, "permission denied for table")


@pytest.mark.parametrize("arguments", [*OF_DATABASE, TOKENS[1]], ids=" ".join)
async def test_a_newer_schema(
    arguments: Sequence[str], database_url: str, tmp_path: Path, embedded_cluster: Cluster
) -> None:
    await set_revision(database_url, "9999", compatible_with="9999")
    kubeconfig = str(as_gateway(embedded_cluster.kubeconfig))
    ran = jobgate(*arguments, home=tmp_path, JOBGATE_DATABASE_URL=database_url, JOBGATE_KUBECONFIG=kubeconfig)
    assert_reported(ran, "a newer version of jobgate has migrated it")


@pytest.mark.parametrize("arguments", [SERVE, TOKENS[2], UNINSTALL], ids=" ".join)
def test_a_database_without_tables(
    arguments: Sequence[str], empty_database_url: str, tmp_path: Path, embedded_cluster: Cluster
) -> None:
    kubeconfig = str(as_gateway(embedded_cluster.kubeconfig))
    ran = jobgate(*arguments, home=tmp_path, JOBGATE_DATABASE_URL=empty_database_url, JOBGATE_KUBECONFIG=kubeconfig)
    assert_reported(ran, "run `jobgate migrate`")


@pytest.mark.parametrize(
    ("arguments", "table"),
    [(SERVE, "installation"), (TOKENS[0], "api_tokens"), (TOKENS[1], "api_tokens"), (UNINSTALL, "leases")],
    ids=["serve", "token list", "token create", "uninstall"],
)
async def test_a_missing_table(
    arguments: Sequence[str], table: str, database_url: str, tmp_path: Path, embedded_cluster: Cluster
) -> None:
    await execute(database_url, f"DROP TABLE {table}")
    kubeconfig = str(as_gateway(embedded_cluster.kubeconfig))
    ran = jobgate(*arguments, home=tmp_path, JOBGATE_DATABASE_URL=database_url, JOBGATE_KUBECONFIG=kubeconfig)
    assert_reported(ran, f'relation "{table}" does not exist')


@pytest.mark.parametrize(
    ("arguments", "variable"),
    [
        (SERVE, "JOBGATE_POD_POLICY_ALLOW"),
        (MIGRATE, "JOBGATE_DATABASE_URL"),
        (TOKENS[0], "JOBGATE_SOURCE_HOSTS"),
        (("serve", "--host", "\udcff"), ""),
    ],
)
def test_a_setting_that_is_not_utf_8(arguments: Sequence[str], variable: str, tmp_path: Path) -> None:
    ran = jobgate(*arguments, home=tmp_path, **({variable: "\udcff"} if variable else {}))
    assert_reported(ran, f"{variable or '--host'}: the value has bytes that are not UTF-8")


@pytest.mark.parametrize(
    ("arguments", "url"),
    [
        *((arguments, "postgresql://ci:sec/ret@db:5432/jobs") for arguments in (*OF_DATABASE, WORKERS)),
        (SERVE, "mysql://ci:secret@db/jobs"),
        (MIGRATE, "postgresql://ci:secret@db:port/jobs"),
        (TOKENS[0], "postgresql://ci:secret@[::1/jobs"),
        (UNINSTALL, "db.example/jobs?password=secret"),
    ],
    ids=str,
)
def test_a_url_that_is_not_valid(arguments: Sequence[str], url: str, tmp_path: Path) -> None:
    ran = jobgate(*arguments, home=tmp_path, JOBGATE_DATABASE_URL=url)
    assert_reported(ran, "JOBGATE_DATABASE_URL: it is no URL of PostgreSQL")


@pytest.mark.parametrize(
    ("arguments", "url"),
    [
        *((arguments, "postgresql://ci:secret@127.0.0.1:1/jobs") for arguments in OF_DATABASE),
        (SERVE, "postgresql://ci:secret@nowhere.invalid/jobs"),
        (MIGRATE, "postgresql://ci:secret@/jobs?host=/nowhere"),
        (TOKENS[0], "postgresql://ci:secret@127.0.0.1:1/jobs?sslmode=often"),
        (MIGRATE, "postgresql://ci:secret@127.0.0.1:1/jobs?sslmode=verify-full&sslrootcert=/nowhere"),
    ],
    ids=str,
)
def test_a_server_that_cannot_be_reached(
    arguments: Sequence[str], url: str, tmp_path: Path, embedded_cluster: Cluster
) -> None:
    kubeconfig = str(as_gateway(embedded_cluster.kubeconfig))
    ran = jobgate(*arguments, home=tmp_path, JOBGATE_DATABASE_URL=url, JOBGATE_KUBECONFIG=kubeconfig)
    assert_reported(ran, "the database is not available")


def a_directory(path: Path) -> Path:
    return path


def a_file(text: str) -> Callable[[Path], Path]:
    def written(path: Path) -> Path:
        (path / "kubeconfig").write_text(text)
        return path / "kubeconfig"

    return written


UNREACHABLE = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        (SERVE, a_directory),
        (UNINSTALL, a_file("")),
        (SERVE, a_file("{")),
        (UNINSTALL, a_file("apiVersion: v1")),
        (UNINSTALL, a_file(UNREACHABLE.replace("cluster: c,", ""))),
    ],
    ids=["directory", "empty", "no YAML", "no context", "no cluster"],
)
def test_a_kubeconfig_that_cannot_be_used(
    arguments: Sequence[str], made: Callable[[Path], Path], database_url: str, tmp_path: Path
) -> None:
    kubeconfig = str(made(tmp_path))
    ran = jobgate(*arguments, home=tmp_path, JOBGATE_DATABASE_URL=database_url, JOBGATE_KUBECONFIG=kubeconfig)
    assert_reported(ran, "JOBGATE_KUBECONFIG")


def test_an_uninstall_from_a_cluster_that_does_not_answer(database_url: str, tmp_path: Path) -> None:
    kubeconfig = str(a_file(UNREACHABLE)(tmp_path))
    ran = jobgate(*UNINSTALL, home=tmp_path, JOBGATE_DATABASE_URL=database_url, JOBGATE_KUBECONFIG=kubeconfig)
    assert_reported(ran, "127.0.0.1:1")


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve",),
        ("serve", "--workers", "2"),
        ("dev", "--data-dir", "state"),
        ("demo", "--data-dir", "state", "--exit"),
    ],
    ids=["serve", "workers", "dev", "demo"],
)
def test_a_port_that_is_in_use(
    arguments: Sequence[str], database_url: str, tmp_path: Path, embedded_cluster: Cluster
) -> None:
    kubeconfig = str(as_gateway(embedded_cluster.kubeconfig))
    given = [str(tmp_path / "state") if each == "state" else each for each in arguments]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = jobgate(
            *given, "--port", port, home=tmp_path, JOBGATE_DATABASE_URL=database_url, JOBGATE_KUBECONFIG=kubeconfig
        )
    assert "Traceback" not in ran.stderr
    assert ran.returncode == 2
    assert f"jobgate: cannot serve on 127.0.0.1:{port}: Address already in use\n" in ran.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_of_metrics_that_is_in_use(workers: str, database_url: str, tmp_path: Path) -> None:
    variables = {"JOBGATE_DATABASE_URL": database_url, "JOBGATE_ROLE": "api", "JOBGATE_WORKERS": workers}
    with kept_port() as port:
        ran = jobgate("serve", "--port", port, home=tmp_path, JOBGATE_METRICS_PORT=port, **variables)
    assert_reported(ran, f"JOBGATE_METRICS_PORT ({port}) is the port of the API: choose another one")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = jobgate(*SERVE, home=tmp_path, JOBGATE_METRICS_PORT=port, **variables)
    assert_reported(ran, f"cannot serve on 127.0.0.1:{port}: Address already in use")


@pytest.mark.parametrize(
    "arguments",
    [
        ("dev", "--data-dir", "/dev/null/state", "--port", "0"),
        ("demo", "--data-dir", "/dev/null/state", "--port", "0", "--exit"),
        ("demo", "--server", "http://127.0.0.1:1"),
        ("demo", "--server", "no address"),
        ("devcluster", "--data-dir", "/dev/null/state"),
        ("devcluster", "node", "--kubeconfig", "/nowhere"),
        ("serve", "--host", "nowhere.invalid"),
        ("serve", "--host", "a" * 64 + ".example"),
    ],
    ids=" ".join,
)
def test_a_fault_of_the_machine(
    arguments: Sequence[str], tmp_path: Path, database_url: str, embedded_cluster: Cluster
) -> None:
    kubeconfig = str(as_gateway(embedded_cluster.kubeconfig))
    ran = jobgate(*arguments, home=tmp_path, JOBGATE_DATABASE_URL=database_url, JOBGATE_KUBECONFIG=kubeconfig)
    assert "Traceback" not in ran.stderr, ran.stderr
    assert ran.returncode == 2, ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("jobgate: "), ran.stderr
