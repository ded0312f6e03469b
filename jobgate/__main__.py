"""The command `jobgate`: the commands of the client, and those of the server if it is installed.

A command imports only the part that it belongs to.
"""

import sys
from collections.abc import Callable

from jobgate.interrupts import silent_interrupts
from jobgate.server_commands import SERVER_COMMANDS, server_command
from jobgate.streams import prepare_streams


def main() -> None:
    prepare_streams()
    with silent_interrupts():
        command = sys.argv[1] if len(sys.argv) > 1 else ""
        run = server_command(command) if command in SERVER_COMMANDS else _client()
    run()


def _client() -> Callable[[], None]:
    from jobgate.cli import command  # noqa: PLC0415

    return command.main


if __name__ == "__main__":
    main()
