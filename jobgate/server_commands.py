"""The commands of the server, which the distribution `jobgate-server` supplies by an entry point."""

import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Final

# The commands of jobgate-server with the first lines of their help, so that `jobgate --help` needs no import of it.
SERVER_COMMANDS: Final = {
    "serve": "Serve with an existing PostgreSQL and an existing cluster.",
    "dev": "Serve with an embedded database and cluster, without tokens.",
    "demo": "Run every example and print what happens.",
    "migrate": "Migrate the database to the current schema.",
    "token": "Manage bearer tokens. Postgres stores only their hashes.",
    "verify": "Check the invariants of the database and the cluster, reading only.",
    "uninstall": "Delete all objects of this installation from the cluster.",
    "recover": "Show what differs after an older database was restored.",
    "purge": "Delete the records of ended jobs from the database, except pinned ones.",
    "export": "Write ended jobs with all that is recorded about them to a folder, in segments.",
    "import": "Store the jobs of an export for reading. They have ended, and nothing happens in the cluster.",
    "devcluster": "Run only the embedded cluster, or with `node` a node agent.",
    "cache-runtime": "Run the server in the pods of a SampleSet, or a hook.",
    "openapi": "Print the OpenAPI document.",
}
# A module `app` of another project may be installed, so the name of the server's module is taken from its distribution.
_ENTRY_POINTS: Final = "jobgate.server"


def server_command(command: str) -> Callable[[], None]:
    """Return what runs the command. Exit with a message if the server is not installed."""
    # `cache-runtime` has an entry point of its own. All others have that with the name `commands`.
    found = {point.name: point for point in entry_points(group=_ENTRY_POINTS)}
    if found:
        run: Callable[[], None] = found.get(command, found["commands"]).load()
        return run
    sys.stderr.write(f"jobgate: the command {command} needs the server: install jobgate with the extra `server`, ")
    sys.stderr.write("as jobgate[server]\n")
    sys.exit(2)
