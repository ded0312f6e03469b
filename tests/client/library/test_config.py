"""Which gateway a command talks to, and where its token goes."""

import stat
from pathlib import Path

import pytest

from app.settings import ENV_PREFIX, Settings
from jobgate.client.config import (
    DEFAULT_SERVER,
    VARIABLES,
    Context,
    ContextError,
    Contexts,
    contexts_file,
    load,
    resolve,
    save,
)

LAB = Context(server="https://lab", token="jg_lab", namespace="vision")
SAVED = Contexts(current="lab", contexts={"lab": LAB, "other": Context(server="https://other")})


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        ({}, {}, LAB),
        ({"namespace": "a"}, {"JOBGATE_NAMESPACE": "b"}, Context(server="https://lab", token="jg_lab", namespace="a")),
        ({"context": "other"}, {}, Context(server="https://other")),
        ({}, {"JOBGATE_CONTEXT": "other", "JOBGATE_TOKEN": "x"}, Context(server="https://other", token="x")),
        ({"server": "https://elsewhere"}, {}, Context(server="https://elsewhere", namespace="vision")),
        ({}, {"JOBGATE_SERVER": "https://lab"}, LAB),
    ],
)
def test_options_come_before_the_environment_and_the_context(
    given: dict[str, str], environment: dict[str, str], expected: Context
) -> None:
    assert resolve(SAVED, environment, **given) == expected


def test_without_contexts_the_gateway_is_the_local_one() -> None:
    assert resolve(Contexts(), {}) == Context(server=DEFAULT_SERVER)


def test_an_unknown_context_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ContextError, match="no context x; accepted: lab, other"):
        resolve(SAVED, {}, context="x")


def test_contexts_are_saved_for_their_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.yaml"
    save(path, SAVED)
    assert load(path) == SAVED
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("contexts: 3")
    with pytest.raises(ContextError, match="not a file of contexts"):
        load(path)


def test_a_file_of_contexts_that_cannot_be_read_or_written_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ContextError, match=f"{tmp_path}: Is a directory"):
        load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ContextError, match=r"file/config.yaml: "):
        save(tmp_path / "file" / "config.yaml", SAVED)


@pytest.mark.parametrize("token", ["jg_ä", "jg_1\n", "jg 1", "jg_\x1b"])
def test_a_token_that_no_header_can_have_is_refused_without_showing_it(token: str) -> None:
    with pytest.raises(ContextError, match="printable ASCII") as refused:
        resolve(Contexts(), {"JOBGATE_TOKEN": token})
    assert token not in str(refused.value)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"JOBGATE_CONFIG": "/x/y"}, "/x/y"),
        ({"XDG_CONFIG_HOME": "/c", "HOME": "/h"}, "/c/jobgate/config.yaml"),
        ({"HOME": "/h"}, "/h/.config/jobgate/config.yaml"),
    ],
)
def test_the_place_of_the_contexts(environment: dict[str, str], expected: str) -> None:
    assert contexts_file(environment) == Path(expected)


def test_no_variable_of_the_client_is_a_setting_of_the_gateway() -> None:
    assert not {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields} & VARIABLES


@pytest.mark.parametrize(
    "server", ["gateway", "gateway:8080", "http://", "http://a b", "http://a:port", "ftp://a", "http://a:0"]
)
def test_a_server_is_an_address(server: str) -> None:
    with pytest.raises(ContextError, match="accepted: http://HOST:PORT"):
        resolve(Contexts(), {}, server=server)


@pytest.mark.parametrize("server", ["http://a", "https://a/prefix/", "http://[::1]:8080"])
def test_the_slash_at_the_end_of_an_address_does_not_count(server: str) -> None:
    assert resolve(Contexts(), {}, server=server).server == server.rstrip("/")


def test_a_slash_in_the_file_does_not_separate_a_server_from_its_token() -> None:
    lab = Context(server="https://lab/", token="jg_lab")
    found = resolve(Contexts(current="lab", contexts={"lab": lab}), {}, server="https://lab")
    assert (found.server, found.token) == ("https://lab", "jg_lab")
