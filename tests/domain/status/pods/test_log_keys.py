"""The labels of a pod, which any client can write, name its attempt or none."""

from uuid import UUID

import pytest

from app.domain.kept_logs.keys import LogKey
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata, Pod
from app.domain.status.pods.log_keys import attempt_key

JOB = UUID("7d0f7b94-3df3-4f36-9b4c-7cbf2e7f8d11")
NAMED = {labels.JOB_UID: str(JOB), labels.TASK: "worker", labels.TASK_RANK: "0", labels.ATTEMPT: "1"}


def test_the_labels_of_a_pod_name_its_attempt() -> None:
    assert attempt_key(Pod(metadata=Metadata(labels=NAMED))) == LogKey(JOB, "worker", 0, 1, "")


@pytest.mark.parametrize("label", [labels.JOB_UID, labels.TASK_RANK, labels.ATTEMPT])
@pytest.mark.parametrize("value", [None, "", "x", "-1", "\N{ARABIC-INDIC DIGIT ONE}"])
def test_other_labels_name_none(label: str, value: str | None) -> None:
    changed = {key: text for key, text in (NAMED | {label: value}).items() if text is not None}
    assert attempt_key(Pod(metadata=Metadata(labels=changed))) is None
