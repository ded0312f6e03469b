"""Entry point of the command `jobgate`.

The cache runtime starts in every pod of a SampleSet and in each of its hooks. It starts without the imports of the
gateway, which take seconds.
"""

import sys


def main() -> None:
    if sys.argv[1:2] == ["cache-runtime"]:
        from app.cache_runtime.cli import runtime  # noqa: PLC0415 - a branch does not import the modules of the other one

        runtime(sys.argv[2:], prog_name="jobgate cache-runtime")
    else:
        from app.cli import app  # noqa: PLC0415

        app(prog_name="jobgate")


if __name__ == "__main__":
    main()
