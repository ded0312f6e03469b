"""`jobgate cache-runtime`: the server, and the four jobs by hand without one."""

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

from app.cache_runtime.engine import CacheEngine, engine_for, perform
from app.cache_runtime.errors import JobFailed, NotServable
from app.cache_runtime.options import OPTIONS, JobKind
from app.cache_runtime.places import Places, WarmupTimes

runtime = typer.Typer(
    help="What runs beside the data of a SampleSet: its server, and its jobs by hand.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_DEFAULT_TIMES = WarmupTimes()
_NUMBERED = re.compile(r".*-(\d+)")
_AS_OPTIONS = {"allow_extra_args": True, "ignore_unknown_options": True}

Driver = Annotated[str, typer.Option("--driver", help="the cache driver")]
Development = Annotated[bool, typer.Option("--development", help="tell more in the log")]
CacheDirs = Annotated[list[Path] | None, typer.Option("--cacheDirs", help="a cache directory; may be repeated")]
DataDir = Annotated[Path | None, typer.Option("--dataDir", help="where the volume is mounted")]
Index = Annotated[int | None, typer.Option("--index", help="this server's number, else that of the host name")]


@runtime.command()
def server(  # noqa: PLR0913 - the flags are upstream's, and a few of ours
    *,
    driver: Driver = "juicefs",
    development: Development = False,
    cache_dirs: CacheDirs = None,
    data_dir: DataDir = None,
    index: Index = None,
    port: Annotated[int, typer.Option("--serverPort", help="0 takes a free one")] = 7716,
    host: Annotated[str, typer.Option("--serverHost", help="the address to serve on")] = "0.0.0.0",  # noqa: S104
    server_dir: Annotated[Path, typer.Option("--serverDir", help="options and results are kept here")] = Path(
        "/runtime"
    ),
    interval: Annotated[float, typer.Option("--interval", help="seconds between two looks at the cache")] = 30,
    timeout: Annotated[float, typer.Option("--timeout", help="seconds that each part of such a look may take")] = 30,
    token_file: Annotated[Path | None, typer.Option("--token-file", help="holds the secret of the controller")] = None,
    warmup_times: Annotated[
        str,
        typer.Option("--warmup-times", help="seconds: workers, lists, directory, poll, beat, silence"),
    ] = ",".join(f"{value:g}" for value in msgspec.to_builtins(_DEFAULT_TIMES).values()),
) -> None:
    """Serve a SampleSet's controller until a signal comes."""
    from app.cache_runtime.server import ServerSettings, serve  # noqa: PLC0415 - a job by hand needs no HTTP

    places = Places(data_dir, tuple(cache_dirs or ()), timeout, _number(index), warmup=_times(warmup_times))
    settings = ServerSettings(places, driver, host, port, server_dir, interval, token_file)
    _logged(development)
    _run(lambda: serve(settings, lambda url: print(f"cache runtime is ready at {url}", flush=True)))  # noqa: T201


def _job(kind: JobKind, help_text: str) -> None:
    """A command of the job's name, whose flags are its options' names."""

    def command(
        context: typer.Context,
        driver: Driver = "juicefs",
        development: Development = False,  # noqa: FBT002 - a flag
        cache_dirs: CacheDirs = None,
        data_dir: DataDir = None,
        index: Index = None,
        job: Annotated[str, typer.Option("--job", help="the same on all servers of one warm-up")] = "by-hand",
    ) -> None:
        _logged(development)
        defaults = {"strategyName": "random"} if kind is JobKind.WARMUP else {}
        options = _options(kind, [*context.args], defaults)
        places = Places(data_dir, tuple(cache_dirs or ()), server=_number(index))

        async def work() -> None:
            engine: CacheEngine = engine_for(driver, places)
            told = await perform(engine, options, job)
            if told:
                print(told)  # noqa: T201

        _run(work)

    names = ", ".join(f"--{field.encode_name}" for field in msgspec.structs.fields(OPTIONS[kind]))
    runtime.command(kind.value, help=help_text, epilog=f"Options: {names}", context_settings=_AS_OPTIONS)(command)


_job(JobKind.SYNC, "Copy a source into the volume. `--options -` reads them as JSON, away from the command line.")
_job(JobKind.WARMUP, "Fill the caches of the set's servers; the strategy is random unless told otherwise.")
_job(JobKind.RMR, "Remove paths of the volume.")
_job(JobKind.CLEAR, "Empty cache directories.")


def _options(kind: JobKind, arguments: list[str], defaults: dict[str, Any]) -> Any:
    """`--name=value`, `--name value`, or `--name` for true; what is repeated makes a list."""
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
            raise typer.BadParameter(f"there is no option {name}; there are {', '.join(fields)}")
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
        raise typer.BadParameter(f"the options are no JSON object: {error}") from None


def _number(index: int | None) -> int | None:
    match = _NUMBERED.fullmatch(os.environ.get("HOSTNAME") or socket.gethostname())
    return index if index is not None else int(match[1]) if match else None


def _times(text: str) -> WarmupTimes:
    try:
        return WarmupTimes(*map(float, text.split(",")))
    except (ValueError, TypeError):
        raise typer.BadParameter(f"--warmup-times takes six numbers, such as {_DEFAULT_TIMES}") from None


def _logged(development: bool) -> None:  # noqa: FBT001
    level = logging.DEBUG if development else logging.INFO
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("app.cache_runtime").setLevel(level)


def _run(work: Callable[[], Awaitable[None]]) -> None:
    """What an operator can mend is told in one sentence, with status 2; a job that failed, with status 1."""

    async def main() -> None:
        await work()

    try:
        asyncio.run(main())
    except NotServable as error:
        typer.echo(f"jobgate cache-runtime: {error}", err=True)
        raise typer.Exit(2) from None
    except JobFailed as error:
        typer.echo(f"jobgate cache-runtime: {error}", err=True)
        raise typer.Exit(1) from None
