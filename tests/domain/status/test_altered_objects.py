"""What a webhook or policy changes in a new pod.

tests/loops/jobs/actions/test_altered_objects.py covers its identity.
"""

from typing import Any

import msgspec
import pytest

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Pod
from app.domain.status.altered_objects import altered_message


def test_only_labels_of_jobgate_must_stay() -> None:
    sent, created = pod(None, "train"), pod(None, "train")
    sent["metadata"]["labels"] = {labels.JOB_UID: "u", "team": "a", "gone": "b"}
    created["metadata"]["labels"] = {labels.JOB_UID: "u", "team": "altered"}
    assert not altered_message(sent, msgspec.convert(created, Pod))
    created["metadata"]["labels"][labels.JOB_UID] = "other"
    assert f'{labels.JOB_UID}] is "other" instead of "u"' in altered_message(sent, msgspec.convert(created, Pod))


def pod(main: str | None, *containers: str) -> dict[str, Any]:
    annotations = {"example.com/note": "kept"} if main is None else {labels.MAIN_CONTAINER: main}
    metadata = {"name": "train-worker-0", "labels": {}, "annotations": annotations}
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": name} for name in containers]}}


@pytest.mark.parametrize(
    ("sent", "created", "named"),
    [
        (pod(None, "train"), pod(None, "train", "proxy"), None),
        (pod(None, "train"), pod(None, "renamed"), None),
        (pod("train", "train"), pod("train", "proxy", "train"), None),
        (pod(None, "train", "log"), pod("train", "train", "log", "proxy"), None),
        (pod("train", "train"), pod(None, "train", "proxy"), 'is missing instead of "train"'),
        (pod("train", "train"), pod("proxy", "train", "proxy"), 'is "proxy" instead of "train"'),
        (pod("train", "train", "log"), pod("log", "train", "log"), 'is "log" instead of "train"'),
        (pod(None, "train"), pod("proxy", "train", "proxy"), 'is "proxy" instead of missing'),
        (pod("train", "train"), pod("train", "renamed"), 'is missing instead of "train"'),
    ],
)
def test_a_pod_keeps_the_container_whose_end_is_that_of_the_replica(
    sent: dict[str, Any], created: dict[str, Any], named: str | None
) -> None:
    message = altered_message(sent, msgspec.convert(created, Pod))
    assert named in message if named else not message
