"""Short constructors of GenericJobs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Body = dict[str, Any]

FOREVER = "exec sleep 600"
SCRIPT = "devcluster.jobgate.dev/script"


def until_marked(mark: Path, then: str) -> str:
    """A script that goes on when the test makes this file."""
    return f"while test ! -e {mark}; do sleep 0.05; done; {then}"


def container(script: str = FOREVER, name: str = "main", **more: Any) -> Body:
    return {"name": name, "image": "busybox", "command": ["sh", "-c", script], **more}


def task(
    script: str = FOREVER,
    kind: str = "worker",
    *,
    replicas: int = 1,
    policy: str = "Never",
    limit: int | None = None,
    play: Sequence[Mapping[str, Any]] | None = None,
    labels: Mapping[str, str] | None = None,
    **pod: Any,
) -> Body:
    """A replica type of one container; `play` is a script that the node plays, `pod` adds to the pod's spec."""
    spec = {
        "containers": [container(script)],
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        **pod,
    }
    metadata: Body = {}
    if play is not None:
        metadata["annotations"] = {SCRIPT: json.dumps(play)}
    if labels:
        metadata["labels"] = dict(labels)
    restart: Body = {"policy": policy} | ({} if limit is None else {"limit": limit})
    template = {"spec": spec} | ({"metadata": metadata} if metadata else {})
    return {"type": kind, "replicas": replicas, "restartPolicy": restart, "template": template}


def job(name: str, *tasks: Body, annotations: Mapping[str, str] | None = None, **spec: Any) -> Body:
    """With no task, one that runs until somebody stops it."""
    metadata: Body = {"name": name}
    if annotations:
        metadata["annotations"] = {f"jobgate.dev/{key}": value for key, value in annotations.items()}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": metadata,
        "spec": {"replicaSpecs": list(tasks) or [task()], **spec},
    }
