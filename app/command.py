"""The commands of the server, for the command `jobgate` of the client, which finds them by an entry point.

The cache runtime starts in every pod of a SampleSet and in each of its hooks, so it imports nothing of the gateway.
"""

import sys
from collections.abc import Callable
from functools import partial


def command_of(name: str) -> Callable[[], None]:
    """Return what runs the command with the arguments of the process."""
    if name == "cache-runtime":
        from cacheserver.cli import runtime  # noqa: PLC0415

        return partial(runtime, sys.argv[2:], prog_name="jobgate cache-runtime")
    from app.cli import app  # noqa: PLC0415

    return partial(app, prog_name="jobgate")
