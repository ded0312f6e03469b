"""The values of jobgate's labels, which every client of the cluster can set."""

import pytest

from app.domain.kubernetes import labels

UID = "0b51cb8a-93a5-4b3e-a6b5-0ddc0ffee000"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (UID, True),
        (UID.upper(), False),
        (UID.replace("-", ""), False),
        (f"{{{UID}}}", False),
        (f"urn:uuid:{UID}", False),
        (f"{UID}\n", False),
        (f"{UID[:-1]}\u0660", False),
        (UID[:-1], False),
        ("", False),
    ],
)
def test_only_the_form_that_jobgate_writes_is_a_uid(text: str, *, expected: bool) -> None:
    assert labels.is_job_uid(text) is expected
