"""Registers the fixtures, which are in the modules of `tests.support`."""

pytest_plugins = [
    "tests.support.golden",
    "tests.support.properties",
    "tests.support.postgres",
    "tests.support.cluster",
    "tests.support.log_lines",
    "tests.support.proof",
    "tests.support.longest",
    "tests.support.reruns",
]
