"""What all commands share: the settings of the environment, and how work runs until it ends or a signal stops it.

As in `app.cli`, functions import their modules when they run.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from app.db.postgres.engine import Database
    from app.settings import Settings

# Work that ends soon after the event is set, and returns an exit status.
Stoppable = Callable[[asyncio.Event], Awaitable[int | None]]


def read_settings(**given: Any) -> "Settings":
    """Return the settings of the environment, overridden by the given options. Exit if one is not valid."""
    from pydantic import ValidationError

    from app.settings import ENV_PREFIX, Settings
    from app.telemetry.logs import configure_logging, report_failure

    # Before the other settings are read, so that an error in one of them is reported in the format of the log.
    wanted = given.get("log_format") or os.environ.get(f"{ENV_PREFIX}LOG_FORMAT")
    configure_logging("text" if wanted == "text" else "json", "info")
    options = {f"--{name.replace('_', '-')}": value for name, value in given.items() if isinstance(value, str)}
    variables = {name: value for name, value in os.environ.items() if name.upper().startswith(ENV_PREFIX)}
    # Python keeps such bytes as lone surrogates, which most functions refuse with errors of their own.
    undecoded = [name for name, value in (variables | options).items() if not _is_utf8(value)]
    for name in undecoded:
        report_failure(f"{name}: the value has bytes that are not UTF-8")
    if undecoded:
        raise typer.Exit(2)
    try:
        settings = Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        for problem in error.errors():
            name = f"{ENV_PREFIX}{'.'.join(map(str, problem['loc'])).upper()}: " if problem["loc"] else ""
            report_failure(f"{name}{problem['msg'].removeprefix('Value error, ')}")  # the words of pydantic
        raise typer.Exit(2) from None
    configure_logging(settings.log_format, settings.log_level)
    return settings


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def run(work: Stoppable, *, shutdown_timeout: float | None = None) -> None:
    """Run the work until it ends or a signal stops it, and exit with its status.

    An error that an operator can fix is printed without a traceback; the status is then 2.
    """
    from app.running.execution import exit_status, run_loop
    from app.running.shutdown import stop_on_signals

    async def main() -> int:
        stop = asyncio.Event()
        with stop_on_signals(stop, limit=shutdown_timeout):
            return await work(stop) or 0

    raise typer.Exit(exit_status(lambda: run_loop(main())))


def database_url() -> str:
    from app.settings import ENV_PREFIX

    url = read_settings(log_format="text").database_url
    if url is None:
        typer.echo(f"jobgate: no database: set {ENV_PREFIX}DATABASE_URL", err=True)
        raise typer.Exit(2)
    return url


def with_database(work: "Callable[[Database], Awaitable[None]]") -> None:
    from app.db.postgres import schema_version
    from app.db.postgres.engine import Database
    from app.running.connections import NotConfigured

    url = database_url()

    async def with_pool(_: asyncio.Event) -> None:
        if unusable := await schema_version.check_database(url):
            raise NotConfigured("; ".join(unusable))
        db = await Database.open(url, pool_size=1)
        try:
            await work(db)
        finally:
            await db.close()

    run(with_pool)
