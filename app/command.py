"""The command `jobgate` from its first word on.

A cache runtime starts in every pod of a SampleSet, and in each of its hooks; it does not wait for the gateway's code to
be imported.
"""

import sys


def main() -> None:
    if sys.argv[1:2] == ["cache-runtime"]:
        from app.cache_runtime.cli import runtime  # noqa: PLC0415 - each branch without the other's modules

        runtime(sys.argv[2:], prog_name="jobgate cache-runtime")
    else:
        from app.cli import app  # noqa: PLC0415

        app(prog_name="jobgate")


if __name__ == "__main__":
    main()
