"""The commands of the client, in the order of `jobgate --help`."""

import sys
from typing import Final

import typer
from typer.completion import get_completion_inspect_parameters

from jobgate.cli.commands import (
    changing,
    comparing,
    completion,
    contexts,
    discovery,
    logs,
    queues,
    reading,
    redacting,
    submission,
    usage,
    waiting,
)
from jobgate.cli.exits import Exit
from jobgate.cli.printing import report
from jobgate.cli.root import Root, root
from jobgate.server_commands import SERVER_COMMANDS
from jobgate.streams import discard

# For commands whose arguments are not read, `--help` included.
_UNREAD: Final = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

app = typer.Typer(
    cls=Root,
    help="Submit distributed training jobs, and follow them.\n\nExample: jobgate submit -f job.yaml --watch",
    add_completion=False,  # two options, which the command `completion` replaces
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(root)
for command in (
    submission.submit,
    comparing.diff,
    reading.list_,
    reading.top,
    queues.queues,
    usage.usage,
    reading.get,
    reading.status,
    reading.describe,
    logs.logs,
    waiting.watch,
    waiting.wait,
    reading.events,
    reading.history,
    changing.scale,
    changing.pause,
    changing.resume,
    changing.cancel,
    changing.retry,
    changing.delete,
    redacting.redact,
    discovery.kinds,
    discovery.explain,
    contexts.login,
    contexts.whoami,
    contexts.context,
    reading.version,
    completion.completion,
):
    app.command(command.__name__.rstrip("_"))(command)


def _refuse(context: typer.Context) -> None:
    """Answer a command of the server that follows options. Without them, the entry point runs it."""
    context.fail(f"`{context.info_name}` takes no options before its name")


def main() -> None:
    """Run the client's command, whose help lists the commands of the server too."""
    panel = "Server (extra `server`)"
    for name, text in SERVER_COMMANDS.items():
        app.command(name, help=text, rich_help_panel=panel, context_settings=_UNREAD)(_refuse)
    get_completion_inspect_parameters()  # registers the shells, so that their completion scripts get answers
    try:
        app(prog_name="jobgate")
    except OSError as error:  # such as a full disk below standard output
        discard("stdout")
        report(f"the output cannot be written: {error.strerror or error}")
        sys.exit(Exit.USAGE)
