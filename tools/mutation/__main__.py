"""`make mutate`: runs the tests of the domain on a fixed sample of its mutants, and prints the score.

    --every=N      the sample is one of N mutants of each module (30 by default; 1 tests all)
    --jobs=N       processes that run tests (the number of cores by default)
    paths          modules or packages of app/domain to mutate instead of all

Each mutant runs only the tests that cover its line, and those of the test modules that cover most of its module first.
A mutant that no test kills is printed. Strengthen a test, simplify the code, or, if the mutant behaves as the original,
add it with a reason to equivalent.toml. The exit status is 1 if fewer than 95 % of the other mutants are killed.
"""

import os
import sys

from tools import apart


def main() -> None:
    apart.install("mutation", with_project=True)
    python = str(apart.directory("mutation") / "bin" / "python")
    os.execv(python, [python, "-m", "tools.mutation.score", *sys.argv[1:]])


if __name__ == "__main__":
    main()
