"""JOBGATE_ACCELERATORS_FILE: its effect on plans, and the messages about errors in it."""

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.domain.kinds.job_kind import Accelerator
from app.settings import Settings

SHIPPED = """
accelerators:
  alpha.kubernetes.io/nvidia-gpu:
    volumes:
      - name: nvidia-libraries
        mountPath: /usr/local/nvidia  # expected to be in /etc/ld.so.conf of the image
        hostPath:  /var/lib/nvidia-docker/volumes/nvidia_driver/current
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "controller_config_file.yaml"


def test_the_config_of_the_operator_is_accepted(file: Path) -> None:
    file.write_text(SHIPPED)
    (found,) = Settings(accelerators_file=str(file)).site().accelerators.items()
    path = "/var/lib/nvidia-docker/volumes/nvidia_driver/current"
    volume = {"name": "nvidia-libraries", "hostPath": {"path": path}}
    mount = {"name": "nvidia-libraries", "mountPath": "/usr/local/nvidia"}
    assert found == ("alpha.kubernetes.io/nvidia-gpu", Accelerator(volumes=(volume,), mounts=(mount,)))


@pytest.mark.parametrize("given", [None, ""])
def test_without_a_file_there_are_no_accelerators(given: str | None) -> None:
    assert Settings(accelerators_file=given).site().accelerators == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read: No such file"),
        ("accelerators: {a/b: {volume: []}}", '/accelerators/a~1b/volume: unknown field "volume"; did you mean'),
        ("accelerators: [", "controller_config_file.yaml"),
        ("{}", "/accelerators: the field is required"),
    ],
)
def test_an_error_in_the_file_stops_the_start(file: Path, text: str | None, words: str) -> None:
    if text is not None:
        file.write_text(text)
    with pytest.raises(ValidationError) as refused:
        Settings(accelerators_file=str(file))
    (error,) = refused.value.errors()
    assert words in error["msg"]


def test_a_pipe_stops_the_start_rather_than_delaying_it_for_ever(file: Path) -> None:
    os.mkfifo(file)
    with pytest.raises(ValidationError, match="cannot be read: is a device, pipe or socket; accepted: a regular file"):
        Settings(accelerators_file=str(file))
