"""Fixtures of the tests of the client."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from typer.testing import CliRunner, Result

from jobgate.cli.command import app
from jobgate.client import Client, RetryPolicy, config
from tests.client.scripted import Answer, RunCommand, Script


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunCommand:
    """Run a command on a script: `run(["list"], *answers)`."""

    def invoke(
        arguments: list[str],
        *answers: Answer,
        stdin: str | None = None,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[Result, Script]:
        script = Script(*answers)

        def connect(context: config.Context, retries: RetryPolicy | None = None) -> Client:
            return Client(
                context.server,
                token=context.token,
                namespace=context.namespace,
                retries=retries,
                transport=script.transport,
            )

        monkeypatch.setattr(config, "connect", connect)
        environment = dict.fromkeys(config.VARIABLES) | {
            "JOBGATE_CONFIG": str(tmp_path / "none.yaml"),
            "JOBGATE_NAMESPACE": "team",
            "JOBGATE_TOKEN": "t",
            **variables,
        }
        return CliRunner().invoke(app, arguments, input=stdin, env=environment, prog_name="jobgate"), script

    return invoke
