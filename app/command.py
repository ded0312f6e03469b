"""Entry point of the command `jobgate`: the commands of the client, and those of the server if it is installed.

Each of the three parts starts without the imports of the others. The cache runtime starts in every pod of a SampleSet
and in each of its hooks; the commands of the client must not need the dependencies of the server.
"""

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

from jobgate.interrupts import silent_interrupts
from jobgate.streams import prepare_streams

# The commands of app/cli.py with the first lines of their help, so that `jobgate --help` needs no import of it.
SERVER_COMMANDS: Final = {
    "serve": "Serve with an existing PostgreSQL and an existing cluster.",
    "dev": "Serve with an embedded database and cluster, without tokens.",
    "demo": "Run every example and print what happens.",
    "migrate": "Migrate the database to the current schema.",
    "token": "Manage bearer tokens. Postgres stores only their hashes.",
    "uninstall": "Delete all objects of this installation from the cluster.",
    "devcluster": "Run only the embedded cluster, or with `node` a node agent.",
    "cache-runtime": "Run the server in the pods of a SampleSet, or a hook.",
    "openapi": "Print the OpenAPI document.",
}
# Packages that only the server needs. One stands for all, because the extra `server` installs them together.
_SERVER_PACKAGE: Final = "fastapi"


def main() -> None:
    prepare_streams()
    with silent_interrupts():
        run = _part(sys.argv[1] if len(sys.argv) > 1 else "")
    run()


def _part(command: str) -> Callable[[], None]:
    """Return the part that has the command. A branch does not import the modules of the others."""
    if command == "cache-runtime":
        from cacheserver.cli import runtime  # noqa: PLC0415

        return partial(runtime, sys.argv[2:], prog_name="jobgate cache-runtime")
    if command in SERVER_COMMANDS:
        return _server(command)
    return _client()


def _server(command: str) -> Callable[[], None]:
    if importlib.util.find_spec(_SERVER_PACKAGE) is None:
        sys.exit(_missing(command))
    from app.cli import app  # noqa: PLC0415

    return partial(app, prog_name="jobgate")


def _missing(command: str) -> int:
    sys.stderr.write(f"jobgate: the command {command} needs the server: install jobgate with the extra `server`, ")
    sys.stderr.write("as jobgate[server]\n")
    return 2


def _client() -> Callable[[], None]:
    """Return the client's command, whose help lists the commands of the server too."""
    from jobgate.cli.command import command_with  # noqa: PLC0415

    return command_with(SERVER_COMMANDS, title="Server (extra `server`)")


if __name__ == "__main__":
    main()
