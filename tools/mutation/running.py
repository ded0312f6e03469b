"""Runs tests with a mutant, in a process that is forked from one that has imported what no mutant changes."""

import os
import resource
import sys
from pathlib import Path

import pytest

from tools.mutation.covering import OPTIONS

# What a process imports that runs tests, besides the code of jobgate.
PRELOADED = [
    *("hypothesis.strategies", "jsonschema_rs", "msgspec", "pydantic.json_schema", "pytest", "yaml"),
    *("tools.mutation.mutants", __name__),
]
# A mutant may loop for ever, or allocate for ever. Without a mutation, no test takes more than two seconds.
TEST_SECONDS = 20
MOST_MEMORY = 4 << 30


def run(tree: Path, tests: list[str]) -> None:
    """Run the tests in `tree` until one fails. The process ends with the exit status of pytest."""
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    # Bytecode that is written in the second of a mutation would be valid for the next one.
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.dup2(nowhere, sys.stderr.fileno())
    os._exit(pytest.main([*OPTIONS, "-x", "--tb=no", "-o", f"timeout={TEST_SECONDS}", *tests]))
