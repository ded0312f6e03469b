"""Defaults of the commands `dev` and `demo`."""

from typing import Any

from app.domain.cache.limits import ANY_CACHE_ROOTS
from app.domain.policy import JOBGATE_CONTROLS, Level


def dev_defaults() -> dict[str, Any]:
    """Return the defaults of settings that differ for `dev` and `demo`."""
    # Only this process uses the database, so a short lease lets it restart fast after it was killed. There is no load
    # balancer to drain. Its own user submits all jobs, so it accepts every manifest of the kinds' upstream projects.
    return {
        "lease_seconds": 6.0,
        "request_timeout": 2.5,
        "drain_seconds": 0.0,
        "access_log": "off",
        "pod_policy": Level.PRIVILEGED,
        "pod_policy_allow": JOBGATE_CONTROLS,
        "cache_roots": ANY_CACHE_ROOTS,
        # The data of the examples (app/demo/sample_story.py). `demo` adds its own.
        "file_directories": ("/var/tmp/jobgate-digits",),  # noqa: S108
    }
