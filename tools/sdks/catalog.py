"""The languages and the generated clients (SDKs).

The directory `examples/clients/<language>` is a project in this language: the programs that use its clients, and the
lock files of its dependencies and generators. `make sdks` copies it to `build/sdks/<language>`, and runs there the
commands of the tables below. In an argument, `{python}` is the interpreter of the Python project, `{document}` is the
OpenAPI document, and `{root}` is this repository.
"""

import sys
from dataclasses import dataclass
from typing import Final

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A toolchain, and the commands that install the dependencies of the language's project."""

    name: str
    programs: tuple[str, ...] = ()
    """Programs that must be on PATH."""
    locks: tuple[str, ...]
    """Files below the root of the repository that pin all packages. The project is installed again when one changes."""
    install: tuple[Command, ...]
    needs: tuple[str, ...] = ()
    """Languages whose projects must be installed first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdk:
    """A generated client, and the program that uses it."""

    name: str
    """The name of its generator."""
    language: str
    package: str
    """The package of the language's registry that pins the version of the generator."""
    example: str
    """The program, as a path in the project."""
    generated: str
    """The generated file or directory, as a path in the project."""
    generate: tuple[Command, ...]
    compile: tuple[Command, ...]
    run: Command
    warning: str = ""
    """A pattern that finds the warnings in the output of the generator. Its group is the text of the warning."""
    tolerated: tuple[str, ...] = ()
    """Warnings that do not fail the build."""


PYTHON: Final = "python"
TYPESCRIPT: Final = "typescript"

LANGUAGES: Final = (
    Language(
        name=PYTHON,
        locks=("requirements/sdks.txt",),
        install=(
            (sys.executable, "-m", "venv", "--without-pip", "--clear", ".venv"),
            (
                *(sys.executable, "-m", "pip", "--python", "{python}", "install", "--quiet", "--no-compile"),
                *("--disable-pip-version-check", "--require-hashes", "--requirement", "{root}/requirements/sdks.txt"),
            ),
        ),
    ),
    Language(
        name=TYPESCRIPT,
        programs=("node", "npm"),
        locks=("examples/clients/typescript/package-lock.json",),
        install=(("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"),),
    ),
)

SDKS: Final = (
    Sdk(
        name="openapi-python-client",
        language=PYTHON,
        package="openapi-python-client",
        example="with_openapi_python_client.py",
        generated="jobgate_client",
        generate=(
            (
                *("{python}", "-m", "openapi_python_client", "generate", "--path", "{document}"),
                *("--output-path", "jobgate_client", "--config", "openapi_python_client.yaml", "--meta", "none"),
            ),
        ),
        compile=(
            ("{python}", "-m", "mypy", "--config-file=", "--strict", "jobgate_client", "with_openapi_python_client.py"),
        ),
        run=("{python}", "with_openapi_python_client.py"),
        warning=r"^WARNING parsing .*\n\n(.+)$",
        # The generator cannot encode YAML. The operations have JSON bodies, too.
        tolerated=("Unsupported content type application/yaml",),
    ),
    Sdk(
        name="openapi-typescript",
        language=TYPESCRIPT,
        package="openapi-typescript",
        example="with-openapi-typescript.ts",
        generated="schema.ts",
        generate=(("node", "node_modules/openapi-typescript/bin/cli.js", "{document}", "--output", "schema.ts"),),
        compile=(("node", "node_modules/typescript/bin/tsc", "--project", "tsconfig.json"),),
        run=("node", "compiled/with-openapi-typescript.js"),
        warning=r"^.*\b([Ww]arn.*)$",
    ),
)
