"""The command `jobgate cache-runtime`, which runs the server of a SampleSet or one job without a server."""

import asyncio
import logging
import os
import re
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from app.base.visible import visible_lines
from app.domain.cache.vocabulary import JobType
from cacheserver.config import RuntimeConfig, WarmupTimes
from cacheserver.engine.cache_engine import CacheEngine, engine_for, perform
from cacheserver.errors import JobFailed, StartupError
from cacheserver.options import OPTIONS, Progress

runtime = typer.Typer(
    help="Run the server in the pods of a SampleSet, or a hook.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_DEFAULT_TIMES = WarmupTimes()
_NUMBERED = re.compile(r".*-(\d+)")
_AS_OPTIONS = {"allow_extra_args": True, "ignore_unknown_options": True}

Driver = Annotated[str, typer.Option("--driver", help="the cache driver")]
Development = Annotated[bool, typer.Option("--development", help="log at the level DEBUG")]
CacheDirs = Annotated[list[Path] | None, typer.Option("--cacheDirs", help="a cache directory; may be repeated")]
DataDir = Annotated[Path | None, typer.Option("--dataDir", help="where the volume is mounted")]
Index = Annotated[
    int | None, typer.Option("--index", help="the index of this server; by default that of the host name")
]


@runtime.command()
def server(  # noqa: PLR0913 - upstream's flags, and a few more
    *,
    driver: Driver = "juicefs",
    development: Development = False,
    cache_dirs: CacheDirs = None,
    data_dir: DataDir = None,
    index: Index = None,
    port: Annotated[int, typer.Option("--serverPort", help="0 takes a free one")] = 7716,
    host: Annotated[str, typer.Option("--serverHost", help="the address to serve on")] = "0.0.0.0",  # noqa: S104
    server_dir: Annotated[Path, typer.Option("--serverDir", help="the directory for options and results")] = Path(
        "/runtime"
    ),
    interval: Annotated[float, typer.Option("--interval", help="seconds between two measurements of the cache")] = 30,
    timeout: Annotated[float, typer.Option("--timeout", help="maximum seconds for each part of a measurement")] = 30,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="the file with the token of the controller")
    ] = None,
    warmup_times: Annotated[
        str,
        typer.Option("--warmup-times", help="seconds: workers, lists, directory, poll, beat, silence"),
    ] = ",".join(f"{value:g}" for value in msgspec.to_builtins(_DEFAULT_TIMES).values()),
) -> None:
    """Run the server of a SampleSet until SIGTERM or SIGINT."""
    from cacheserver.server.process import ServerSettings, serve  # noqa: PLC0415 - the job commands need no HTTP

    config = RuntimeConfig(
        data_dir, tuple(cache_dirs or ()), timeout, _server_index(index), warmup=_times(warmup_times)
    )
    settings = ServerSettings(config, driver, host, port, server_dir, interval, token_file)
    _configure_logging(development)
    _run(lambda: serve(settings, lambda url: print(f"runtime server is ready at {url}", flush=True)))  # noqa: T201


def main() -> None:
    """Run `jobgate cache-runtime` with the arguments after its name."""
    runtime(sys.argv[2:], prog_name="jobgate cache-runtime")


def _job(kind: JobType, help_text: str) -> None:
    """Register the command of a job type; its flags are the names of the options."""

    def command(
        context: typer.Context,
        driver: Driver = "juicefs",
        development: Development = False,  # noqa: FBT002 - a flag
        cache_dirs: CacheDirs = None,
        data_dir: DataDir = None,
        index: Index = None,
        job: Annotated[
            str, typer.Option("--job", help="the name of the job, the same on all servers of a warm-up")
        ] = "by-hand",
    ) -> None:
        _configure_logging(development)
        # As upstream: random on the command line, sequence in a SampleJob.
        defaults = {"strategyName": "random"} if kind is JobType.WARMUP else {}
        options = _options(kind, [*context.args], defaults)
        config = RuntimeConfig(data_dir, tuple(cache_dirs or ()), index=_server_index(index))

        async def work() -> None:
            engine: CacheEngine = engine_for(driver, config)
            message = await perform(engine, options, job, Progress())
            if message:
                print(visible_lines(message))  # noqa: T201

        _run(work)

    names = ", ".join(f"--{field.encode_name}" for field in msgspec.structs.fields(OPTIONS[kind]))
    runtime.command(kind.value, help=help_text, epilog=f"Options: {names}", context_settings=_AS_OPTIONS)(command)


_job(JobType.SYNC, "Copy a source into the volume. `--options -` reads the options as JSON from standard input.")
_job(JobType.WARMUP, "Fill the caches of the set's servers; the default strategy is random.")
_job(JobType.RMR, "Remove paths of the volume.")
_job(JobType.CLEAR, "Empty cache directories.")


def _options(kind: JobType, arguments: list[str], defaults: dict[str, Any]) -> Any:
    """Parse `--name=value`, `--name value`, and `--name` for true. A repeated option makes a list."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(OPTIONS[kind])}
    given: dict[str, Any] = dict(defaults)
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).removeprefix("--").partition("=")
        if name == "options":
            source = value if equals else (rest.pop(0) if rest else "-")
            given |= _json(sys.stdin.read() if source == "-" else Path(source).read_text())
            continue
        if name not in fields:
            raise typer.BadParameter(f"unknown option {name}; accepted: {', '.join(fields)}")
        kept = fields[name].type
        if kept is bool:
            given[name] = value if equals else True
            continue
        value = value if equals else (rest.pop(0) if rest else "")
        given[name] = (*given.get(name, ()), value) if kept == tuple[str, ...] else value
    try:
        return msgspec.convert(given, OPTIONS[kind], strict=False)
    except msgspec.ValidationError as error:
        raise typer.BadParameter(str(error)) from None


def _json(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise typer.BadParameter(f"the options are not a JSON object: {error}") from None


def _server_index(index: int | None) -> int | None:
    """Return the index, by default the ordinal at the end of the pod's host name."""
    match = _NUMBERED.fullmatch(os.environ.get("HOSTNAME") or socket.gethostname())
    return index if index is not None else int(match[1]) if match else None


def _times(text: str) -> WarmupTimes:
    try:
        return WarmupTimes(*map(float, text.split(",")))
    except (ValueError, TypeError):
        raise typer.BadParameter(f"--warmup-times takes six numbers, such as {_DEFAULT_TIMES}") from None


def _configure_logging(development: bool) -> None:  # noqa: FBT001
    level = logging.DEBUG if development else logging.INFO
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("cacheserver").setLevel(level)


def _run(work: Callable[[], Awaitable[None]]) -> None:
    """Run the coroutine. Exit with status 1 if a job failed, and with 2 if the command cannot start as configured."""

    async def main() -> None:
        await work()

    try:
        asyncio.run(main())
    except StartupError as error:
        _report(error)
        raise typer.Exit(2) from None
    except JobFailed as error:
        _report(error)
        raise typer.Exit(1) from None


def _report(error: Exception) -> None:
    # The message may quote the output of a program, and with it names of objects that the owner of a source chooses.
    typer.echo(f"jobgate cache-runtime: {visible_lines(str(error))}", err=True)
