"""Examples in the OpenAPI document: what a newcomer pastes first, and what a refusal looks like."""

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

SAMPLE_MANIFESTS: Final[dict[str, Any]] = {
    "SampleSet": {
        "apiVersion": "batch.paddlepaddle.org/v1alpha1",
        "kind": "SampleSet",
        "metadata": {"name": "imagenet"},
        "spec": {
            "partitions": 2,
            "source": {"uri": "s3://imagenet.s3.eu-west-1.amazonaws.com/train/"},
            "secretRef": {"name": "imagenet-volume"},
            "cache": {"levels": [{"mediumType": "SSD", "path": "/mnt/disk1/cache", "cacheSize": 200_000}]},
        },
    },
    "SampleJob": {
        "apiVersion": "batch.paddlepaddle.org/v1alpha1",
        "kind": "SampleJob",
        "metadata": {"name": "warm-imagenet"},
        "spec": {
            "type": "warmup",
            "sampleSetRef": {"name": "imagenet"},
            "warmupOptions": {"paths": ["n01440764"], "threads": 50},
        },
    },
}
SAMPLE_PATCHES: Final[dict[str, Any]] = {
    "SampleSet": {"spec": {"partitions": 3}},
    "SampleJob": {"spec": {"warmupOptions": {"threads": 100}}},
}

SCALES: Final[dict[str, Any]] = {
    "one": {"summary": "One task can be scaled", "value": {"replicas": 4, "reason": "the queue is long"}},
    "several": {"summary": "Several can", "value": {"tasks": {"collector": 3, "learner": 1}}},
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
