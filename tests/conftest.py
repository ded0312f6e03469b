"""Registers the fixtures, which are in the modules of `tests.support`."""

pytest_plugins = [
    "tests.support.plugins.garbage",
    "tests.support.plugins.golden",
    "tests.support.plugins.properties",
    "tests.support.postgres",
    "tests.support.clusters.cluster",
    "tests.support.telemetry.log_lines",
    "tests.support.plugins.gateways",
    "tests.support.plugins.proof",
    "tests.support.plugins.longest",
    "tests.support.plugins.reruns",
    "tests.support.plugins.log_output",
]
