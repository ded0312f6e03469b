"""Installs the projects of the languages, and generates and compiles the clients in them."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.sdks.catalog import LANGUAGES, PYTHON, Command, Language, Sdk

ROOT = Path(__file__).parents[2]
PROJECTS = ROOT / "examples" / "clients"
DOCUMENT = ROOT / "openapi" / "openapi.json"
COMMAND_SECONDS = 1800.0  # generous: a compiler on a busy machine
TAIL = 40  # lines of a failed command's output
STAMP = ".installed"
# A package that differs from its lock file is a failure, even though a package that cannot be fetched is not.
DIFFERS = re.compile(r"do not match the hashes|EINTEGRITY|checksum mismatch|differs from the lock file", re.IGNORECASE)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


class Skipped(Exception):  # noqa: N818 - a message for the person who started it
    """A client cannot be built, because this machine lacks a program or a package. The message names it."""


class Failed(Exception):  # noqa: N818 - as Skipped
    """A step of `make sdks` failed, and not because this machine lacks something. The message contains the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """The directory in which `make sdks` builds: one subdirectory, called a project, for each language."""

    directory: Path

    def project(self, language: str) -> Path:
        return self.directory / language

    def run(
        self, language: str, command: Command, *arguments: str, environment: dict[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in the project of a language. Raise Failed if it fails."""
        project = self.project(language)
        line = [*self._expanded(command), *arguments]
        try:
            ran = subprocess.run(
                line,
                cwd=project,
                env=_environment() | (environment or {}),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"`{' '.join(line)}` took more than {COMMAND_SECONDS:.0f} s") from None
        if ran.returncode:
            raise Failed(f"`{' '.join(line)}` exited with status {ran.returncode}\n{_tail(ran.stdout, ran.stderr)}")
        return ran

    def _expanded(self, command: Command) -> list[str]:
        values = {"root": ROOT, "document": DOCUMENT, "bin": self.project(PYTHON) / ".venv" / "bin"}
        return [argument.format_map({name: str(value) for name, value in values.items()}) for argument in command]


def _environment() -> dict[str, str]:
    """Return the environment variables for a command: those of this process, except settings of jobgate and Python."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("JOBGATE_", "PYTHON", "VIRTUAL_ENV"))
    }


def _tail(*outputs: str) -> str:
    return "\n".join("\n".join(outputs).strip().splitlines()[-TAIL:])


def install(workshop: Workshop, language: Language) -> None:
    """Copy the project of a language, and install its packages unless those of the current lock files are installed.

    Raises:
        Skipped: a program is missing, or a package cannot be fetched.
        Failed: a package differs from the one in the lock file.
    """
    require_programs(language.programs)
    for name in language.needs:
        install(workshop, find_language(name))
    project = workshop.project(language.name)
    stamp = project / STAMP
    digest = _digest(ROOT / lock for lock in language.locks)
    installed = stamp.exists() and stamp.read_text() == digest
    if not installed:
        _remove(project)
    shutil.copytree(PROJECTS / language.name, project, dirs_exist_ok=True)
    if installed:
        return
    for command in language.install:
        try:
            workshop.run(language.name, command)
        except Failed as failed:
            if DIFFERS.search(str(failed)):
                raise
            raise Skipped(f"its packages cannot be installed: {failed}") from None
    if language.checksums:
        check_packages(project, project / language.checksums)
    stamp.write_text(digest)


def require_programs(programs: Iterable[str]) -> None:
    """Raise Skipped if one of the programs is not on PATH."""
    if missing := [program for program in programs if shutil.which(program) is None]:
        raise Skipped(f"{' and '.join(missing)} not found on PATH")


def check_packages(project: Path, checksums: Path) -> None:
    """Raise Failed unless the packages are exactly those of the checksum file, which has the format of `sha256sum`."""
    expected = {path: digest for digest, path in (line.split() for line in checksums.read_text().splitlines())}
    directories = {(project / path).parent for path in expected}
    found = {
        str(file.relative_to(project)): hashlib.sha256(file.read_bytes()).hexdigest()
        for directory in directories
        for file in directory.glob("*")
    }
    if different := sorted(path for path, _ in expected.items() ^ found.items()):
        raise Failed(f"{', '.join(dict.fromkeys(different))} differs from the lock file {checksums.name}")


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def find_language(name: str) -> Language:
    return next(language for language in LANGUAGES if language.name == name)


def build(workshop: Workshop, sdk: Sdk) -> None:
    """Generate a client, and compile it with the program that uses it.

    Raises:
        Failed: a command fails, the generator prints an unexpected warning, or the client lacks an operation.
    """
    generated = workshop.project(sdk.language) / sdk.generated
    _remove(generated)
    for command in sdk.generate:
        ran = workshop.run(sdk.language, command)
        if warnings := list(unexpected_warnings(sdk, ran.stdout + ran.stderr)):
            raise Failed("\n".join(["the generator warns:", *warnings]))
    if missing := sorted(missing_operations(json.loads(DOCUMENT.read_text()), generated)):
        raise Failed(f"these operations are not in the generated client: {', '.join(missing)}")
    for command in sdk.compile:
        workshop.run(sdk.language, command)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def unexpected_warnings(sdk: Sdk, output: str) -> Iterator[str]:
    if sdk.warning:
        for text in re.findall(sdk.warning, output, re.MULTILINE):
            if not any(text.startswith(tolerated) for tolerated in sdk.tolerated):
                yield text


def missing_operations(document: dict[str, dict[str, dict[str, dict[str, str]]]], generated: Path) -> set[str]:
    """Return the ids of the operations for which the generated code has neither a file nor an identifier."""
    operations = {
        operation["operationId"]
        for item in document["paths"].values()
        for operation in item.values()
        if "operationId" in operation
    }
    files = [path for path in generated.rglob("*") if path.is_file()] if generated.is_dir() else [generated]
    names = {_normalized(path.stem) for path in files}
    for path in files:
        if path.suffix in {".py", ".ts", ".go", ".java"}:
            names |= {_normalized(name) for name in IDENTIFIER.findall(path.read_text(encoding="utf-8"))}
    return {operation for operation in operations if _normalized(operation) not in names}


def _normalized(name: str) -> str:
    """Return a name in lower case without underscores, so that `submit_job` and `SubmitJob` are equal."""
    return name.replace("_", "").lower()
