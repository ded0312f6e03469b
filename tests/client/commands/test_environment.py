"""Whatever the shell hands to a command, it ends with a line that says what is accepted, never with a traceback."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import typer

from jobgate.cli.durations import seconds
from jobgate.cli.manifests import files
from jobgate.client import Client, InvalidArgumentError, InvalidAuthorityError
from jobgate.client.config import Context, ContextError, Contexts, checked_address, save
from jobgate.client.transports import tls_of
from jobgate.interrupts import silent_interrupts
from tests.client.commands.test_commands import dry_run_of
from tests.client.scripted import RunCommand, Script, job, ok, page

# What Python makes of the byte 0xff in an argument of a process.
NOT_UTF8 = "\udcff"
MANIFEST = "kind: GenericJob\nmetadata: {name: tour}\n"
NAMED = (
    *("get", "status", "describe", "logs", "watch", "wait", "events", "history"),
    *("pause", "resume", "cancel", "retry", "delete"),
)


@pytest.mark.parametrize("name", [NOT_UTF8, ".", ".."])
@pytest.mark.parametrize("command", NAMED)
def test_a_name_that_no_path_can_have_is_refused(run: RunCommand, command: str, name: str) -> None:
    result, script = run([command, name])
    assert (result.exit_code, script.requests) == (2, []), result.output
    assert "accepted: " in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "-n", NOT_UTF8],
        ["list", "-n", ".."],
        ["list", "-l", f"{NOT_UTF8}=1"],
        ["list", "--search", NOT_UTF8],
        ["list", "--phase", NOT_UTF8],
        ["logs", "tour", "--task", NOT_UTF8],
        ["logs", "tour", "-c", NOT_UTF8],
        ["cancel", "tour", "--reason", NOT_UTF8],
        ["retry", "tour", "--name", NOT_UTF8],
        ["scale", "tour", "--replicas", "1", "--task", NOT_UTF8],
        ["--server", f"http://{NOT_UTF8}", "list"],
        ["--context", NOT_UTF8, "list"],
        ["explain", NOT_UTF8],
        ["submit", "-f", NOT_UTF8],
    ],
)
def test_a_value_that_is_no_text_is_refused(run: RunCommand, arguments: list[str]) -> None:
    result, _ = run(arguments, ok(job()))
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output


def test_the_library_names_the_argument() -> None:
    with Client("http://gateway", transport=Script().transport) as client:
        for call in (
            lambda: client.jobs.get(NOT_UTF8),
            lambda: client.jobs.get(".."),
            lambda: client.jobs.cancel("tour", reason=NOT_UTF8),
            lambda: client.jobs.submit(NOT_UTF8),
            lambda: client.jobs.submit({"a": NOT_UTF8}),
            lambda: next(iter(client.jobs.list(search=NOT_UTF8))),
        ):
            with pytest.raises(InvalidArgumentError, match=r"(dcff|\.\.).*accepted: "):
                call()


@pytest.mark.parametrize(
    "content",
    [MANIFEST.encode(), b"\xef\xbb\xbf" + MANIFEST.encode(), MANIFEST.encode("utf-16")],
    ids=["utf-8", "byte order mark", "utf-16 of Windows"],
)
def test_manifests_in_the_encodings_of_editors_are_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(content)
    (document,) = files.read([str(path)])
    assert document.text == MANIFEST


@pytest.mark.parametrize("content", [b"\xff\x00", "é".encode("latin-1"), b"\xff\xfe\x00"])
@pytest.mark.parametrize("from_stdin", [False, True])
def test_a_file_that_is_no_text_is_named(run: RunCommand, tmp_path: Path, content: bytes, *, from_stdin: bool) -> None:
    (tmp_path / "job.yaml").write_bytes(content)
    file = "-" if from_stdin else str(tmp_path / "job.yaml")
    result, _ = run(["submit", "-f", file], stdin=content)
    assert (result.exit_code, "byte 1 is not text" in result.stderr) == (2, content[1:] != b"\xfe\x00"), result.output
    assert "accepted: UTF-8, or UTF-16 with a byte order mark" in result.stderr
    assert ("standard input" if from_stdin else file) in result.stderr


@pytest.mark.parametrize("arguments", [["submit", "-f"], ["redact", "--all", "--text-from"]])
def test_a_file_without_end_is_refused(
    run: RunCommand, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str]
) -> None:
    monkeypatch.setattr(files, "_MAX_BYTES", 1 << 20)
    result, script = run([*arguments, "/dev/zero"])
    assert (result.exit_code, script.requests) == (2, [])
    assert result.stderr == f"jobgate: {arguments[-1]} /dev/zero: it is too large; accepted: up to 1 MiB\n"


def test_a_token_without_end_is_refused(tmp_path: Path) -> None:
    ended = jobgate("ulimit -v 4000000; jobgate login http://127.0.0.1:9 --no-oidc < /dev/zero", tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("jobgate: the token is not valid")


def test_an_address_is_no_file(run: RunCommand) -> None:
    result, _ = run(["submit", "-f", "https://example.com/job.yaml"])
    assert result.exit_code == 2
    assert "curl -fsS https://example.com/job.yaml | jobgate submit -f -" in result.stderr


@pytest.mark.parametrize("text", ["9" * 30 + "d", "1e400", "-5m", "nan", "9" * 400, "36601d"])
def test_durations_that_no_clock_has_are_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="accepted: "):
        seconds(text)


def test_long_durations_work(run: RunCommand) -> None:
    result, _ = run(["list", "--since", "36600d"], ok({"items": [], "nextPageToken": None}))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("server", [f"http://{NOT_UTF8}", "http://-ü-.example", "http://a\x01b", f"http://{'ü' * 80}"])
def test_a_host_that_no_name_server_can_know_is_refused(server: str) -> None:
    with pytest.raises(ContextError, match="is no address; accepted: "):
        checked_address(server)


@pytest.mark.parametrize("server", ["http://user:secret@gateway", "https://user@gateway:8443/"])
def test_an_address_has_no_user_because_the_user_would_replace_the_token(server: str) -> None:
    with pytest.raises(ContextError, match="JOBGATE_TOKEN") as refused:
        checked_address(server)
    assert "secret" not in str(refused.value)


def test_a_context_that_cannot_be_saved_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.yaml"
    with pytest.raises(ContextError, match="accepted: UTF-8"):
        save(path, Contexts(contexts={NOT_UTF8: Context(server="http://gateway")}))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ContextError, match="No space left on device"):
        save(path, Contexts())
    assert list(tmp_path.iterdir()) == []


def special_file(kind: str, path: Path) -> Path:
    """Make a file that cannot be read to its end, or is larger than any configuration."""
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.touch()
        os.truncate(path, 1 << 40)
    return path


@pytest.mark.parametrize(("kind", "wrong"), [("pipe", "is a device, pipe or socket"), ("huge", "has 1048576 MiB")])
def test_a_configured_file_without_end_is_refused(run: RunCommand, tmp_path: Path, kind: str, wrong: str) -> None:
    special = special_file(kind, tmp_path / "special")
    with pytest.raises(InvalidAuthorityError, match=f"{special}: {wrong}; accepted: "):
        tls_of(str(special))
    special.rename(tmp_path / "none.yaml")  # JOBGATE_CONFIG
    result, script = run(["list"])
    assert (result.exit_code, script.requests) == (2, [])
    assert result.stderr.startswith(f"jobgate: {tmp_path / 'none.yaml'}: {wrong}; accepted: ")


def test_contexts_have_names(run: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("current: b\ncontexts: {b: {server: 'http://b'}, a: {server: 'http://a'}}\n")
    assert run(["context", "-o", "name"])[0].stdout == "a\nb\n"
    (tmp_path / "none.yaml").unlink()
    assert run(["context", "-o", "name"])[0].stdout == ""


@pytest.mark.parametrize(("metadata", "name"), [({"name": "tour"}, "tour"), ({"generateName": "tour-"}, "tour-")])
def test_a_dry_run_has_a_name(run: RunCommand, metadata: dict[str, str], name: str) -> None:
    answer = dry_run_of() | {"manifest": {"metadata": metadata}}
    result, _ = run(["submit", "-f", "-", "--dry-run", "-o", "name"], ok({"items": [answer]}), stdin=MANIFEST)
    assert (result.exit_code, result.stdout) == (0, f"{name}\n"), result.output


def jobgate(command: str, tmp_path: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command in a shell, which can close and redirect its streams."""
    environment = {"PATH": os.environ["PATH"], "JOBGATE_CONFIG": str(tmp_path / "none.yaml"), "HOME": str(tmp_path)}
    return subprocess.run(
        ["/bin/sh", "-c", command.replace("jobgate", f"{sys.executable} -m jobgate")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "command", ["jobgate --version", "jobgate --help", "jobgate completion bash", "jobgate context -o json"]
)
def test_output_on_a_full_disk_ends_with_a_line_and_never_as_a_failed_job(tmp_path: Path, command: str) -> None:
    ended = jobgate(f"{command} > /dev/full", tmp_path)
    assert (ended.returncode, ended.stderr) == (2, "jobgate: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("jobgate --version >&-", 0),
        ("jobgate --version 2>&-", 0),
        ("jobgate submit -f - <&-", 2),
        ("jobgate submit -f /nowhere 2>&-", 2),
        ("jobgate submit -f /nowhere 2>/dev/full", 2),
        ("jobgate get / 2>/dev/full", 2),
        ("jobgate nothing 2>/dev/full", 2),
        ("jobgate nothing <&- >&- 2>&-", 2),
    ],
)
def test_closed_streams_change_no_status(tmp_path: Path, command: str, status: int) -> None:
    ended = jobgate(command, tmp_path)
    assert (ended.returncode, "Traceback" in ended.stderr) == (status, False), ended.stderr


def test_ctrl_c_before_the_command_runs_ends_it_without_a_traceback(tmp_path: Path) -> None:
    """The modules of a command need a moment, in which a user may press Ctrl-C."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background inherit SIG_IGN\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'jobgate.cli.command':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    command = [sys.executable, "-m", "jobgate", "--version"]
    ended = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with silent_interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, handler)


@pytest.mark.parametrize("end", [KeyboardInterrupt, typer.Abort])
def test_ctrl_c_at_a_question_is_no_failed_job(
    run: RunCommand, monkeypatch: pytest.MonkeyPatch, end: type[BaseException]
) -> None:
    def ask(*_: object, **__: object) -> str:
        raise end

    monkeypatch.setattr("jobgate.cli.commands.contexts._ask_for_token", ask)
    result, _ = run(["login", "http://gateway", "--no-oidc"], variables={"JOBGATE_TOKEN": ""})
    assert result.exit_code == 130, result.output


@pytest.mark.parametrize(("stdin", "status"), [("", 2), ("\n", 2), ("jg_t\n", 0)])
def test_login_reads_the_token_from_a_pipe(run: RunCommand, stdin: str, status: int) -> None:
    result, script = run(
        ["login", "http://gateway", "--no-oidc"], page([]), stdin=stdin, variables={"JOBGATE_TOKEN": ""}
    )
    assert result.exit_code == status, result.output
    if status:
        assert "accepted: --token, JOBGATE_TOKEN, or a line of standard input" in result.stderr
    else:
        assert script.requests[0].headers["Authorization"] == "Bearer jg_t"
