"""Fixtures live in `tests.support`, one module a concern; this file only names them."""

pytest_plugins = [
    "tests.support.golden",
    "tests.support.properties",
    "tests.support.postgres",
    "tests.support.cluster",
    "tests.support.proof",
    "tests.support.longest",
    "tests.support.reruns",
]
