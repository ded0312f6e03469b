"""Short constructors of jobs that can be resized, and what their replicas do when they receive SIGTERM."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Body = dict[str, Any]

GRACE = 120  # what a test holds back meanwhile must not be killed for it
_WORK = "echo hello from $POD_NAME; sleep 600 & wait"


def leaves(then: str = "exit 0") -> str:
    """A script that works until it is asked to stop, and then has a last word."""
    return f"trap 'echo last words; {then}' TERM; {_WORK}"


def leaves_when_marked(mark: Path, then: str = "exit 0") -> str:
    """A script that takes its grace period to stop, until the test makes this file."""
    return leaves(f"while test ! -e {mark}; do sleep 0.05; done; {then}")


def of_rank(scripts: Mapping[int, str], otherwise: str) -> str:
    """A script that is another one in the pods of these ranks."""
    cases = "".join(f"*-{rank}) {script} ;; " for rank, script in scripts.items())
    return f"case $POD_NAME in {cases}*) {otherwise} ;; esac"


def shell(script: str) -> str:
    return f"sh -c {shlex.quote(script)}"


def python(script: str) -> str:
    return f"python -c {shlex.quote(script)}"


def training_job(name: str, entrypoint: str, *, most: int = 4) -> Body:
    """One to `most` trainers, beginning with one."""
    trainer = {"min-instance": 1, "max-instance": most, "entrypoint": entrypoint, "grace_period_seconds": GRACE}
    return {
        "apiVersion": "paddlepaddle.org/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {
            "image": "python:3.12-slim",
            "fault_tolerant": True,
            "local_job": True,
            "master": {"grace_period_seconds": 1},
            "trainer": trainer,
        },
    }


def di_task(kind: str, replicas: int = 1, **pod: Any) -> Body:
    container = {"name": "di-container", "image": "busybox", "command": ["sh", "-c", "exec sleep 600"]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False}
    return {"type": kind, "replicas": replicas, "template": {"spec": spec | pod}}


def di_job(name: str, tasks: Sequence[Body], **spec: Any) -> Body:
    return {
        "apiVersion": "diengine.opendilab.org/v2alpha1",
        "kind": "DIJob",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "tasks": list(tasks), **spec},
    }
