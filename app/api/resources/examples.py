"""Examples in the OpenAPI document: a small job, scale requests and a problem."""

from typing import Any, Final

MANIFEST: Final[dict[str, Any]] = {
    "apiVersion": "batch.tensorstack.dev/v1beta1",
    "kind": "GenericJob",
    "metadata": {"name": "hello"},
    "spec": {
        "replicaSpecs": [
            {
                "type": "worker",
                "replicas": 2,
                "restartPolicy": {"policy": "OnFailure", "limit": 3},
                "template": {
                    "spec": {
                        "containers": [
                            {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", "echo rank $(rank)"]}
                        ]
                    }
                },
            }
        ]
    },
}

SCALES: Final[dict[str, Any]] = {
    "one": {"summary": "A job with one scalable task", "value": {"replicas": 4, "reason": "the queue is long"}},
    "several": {"summary": "A job with several scalable tasks", "value": {"tasks": {"collector": 3, "learner": 1}}},
}

PROBLEM: Final[dict[str, Any]] = {
    "type": "urn:jobgate:problem:InvalidManifest",
    "title": "Unprocessable Entity",
    "status": 422,
    "detail": "the GenericJob is not valid",
    "code": "InvalidManifest",
    "errors": [
        {
            "pointer": "/spec/replicaSpecs/0/replica",
            "code": "UnknownField",
            "detail": 'unknown field "replica"; did you mean "replicas"?',
            "accepted": "one of type, replicas, restartPolicy, template",
        }
    ],
}
