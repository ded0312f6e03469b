"""The languages and the generated clients (SDKs).

The directory `examples/clients/<language>` is a project in this language: the programs that use its clients, and the
lock files of its dependencies and generators. `make sdks` copies it to `build/sdks/<language>`, and runs there the
commands of the tables below. In an argument, `{bin}` is the directory with the programs of the Python project,
`{document}` is the OpenAPI document, and `{root}` is this repository.
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
    checksums: str = ""
    """A file of the project with the SHA-256 digest and the path of each package, if the installer checks none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdk:
    """A generated client, and the program that uses it."""

    name: str
    """The name of its generator. If the generator has several languages, the language follows."""
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
    programs: tuple[str, ...] = ()
    """Programs that must be on PATH, in addition to those of the language."""
    warning: str = ""
    """A pattern that finds the warnings in the output of the generator. Its group is the text of the warning."""
    tolerated: tuple[str, ...] = ()
    """Warnings that do not fail the build."""


PYTHON: Final = "python"
TYPESCRIPT: Final = "typescript"
GO: Final = "go"
JAVA: Final = "java"

LANGUAGES: Final = (
    Language(
        name=PYTHON,
        locks=("requirements/sdks.txt",),
        install=(
            (sys.executable, "-m", "venv", "--without-pip", "--clear", ".venv"),
            (
                *(sys.executable, "-m", "pip", "--python", "{bin}/python", "install", "--quiet", "--no-compile"),
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
    Language(
        name=GO,
        programs=("go",),
        locks=("examples/clients/go/go.mod", "examples/clients/go/go.sum"),
        install=(("go", "mod", "download"),),
    ),
    Language(
        name=JAVA,
        programs=("java", "javac", "mvn"),
        locks=("examples/clients/java/pom.xml", "examples/clients/java/libraries.sha256"),
        install=(
            (
                *("mvn", "--batch-mode", "--quiet", "-DoutputDirectory=lib"),
                "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies",
            ),
        ),
        needs=(PYTHON,),  # the package of openapi-generator contains its jar
        checksums="libraries.sha256",
    ),
)

OPENAPI_GENERATOR: Final = (
    *("{bin}/openapi-generator-cli", "generate", "--input-spec", "{document}"),
    *("--global-property", "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"),
)
ANY_WARNING: Final = r"(?i)^.*\b(warn.*)$"
MYPY: Final = ("{bin}/python", "-m", "mypy", "--config-file=")
JAVAC: Final = ("javac", "-Werror", "-proc:none", "-d", "classes")
OPENAPI_GENERATOR_WARNING: Final = r"^\[main\] (?:WARN|ERROR)\s+\S+ - (.+)$"
OPENAPI_GENERATOR_TOLERATED: Final = (
    "OpenAPI 3.1 support is still in beta",
    "Failed to get the schema name: null",  # an object with any properties, such as the spec of a Job
    "Codegen property is null",  # the same
    "From (reserved word) cannot be used as model name",  # the parameter `from` is a date, and no model is generated
    "Ignoring complex example on request body",  # an example affects only generated documentation
)


def _go(directory: str) -> tuple[Command, ...]:
    """Return the commands that compile the client and the program of a directory."""
    return (
        ("go", "vet", f"./{directory}/..."),
        ("go", "build", "-o", f"{directory}/program", f"./{directory}"),
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
                *("{bin}/python", "-m", "openapi_python_client", "generate", "--path", "{document}"),
                *("--output-path", "jobgate_client", "--config", "openapi_python_client.yaml", "--meta", "none"),
            ),
        ),
        compile=((*MYPY, "--strict", "jobgate_client", "with_openapi_python_client.py"),),
        run=("{bin}/python", "with_openapi_python_client.py"),
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
        compile=(("node", "node_modules/typescript/bin/tsc", "--project", "tsconfig.openapi-typescript.json"),),
        run=("node", "compiled/with-openapi-typescript.js"),
        warning=ANY_WARNING,
    ),
    Sdk(
        name="openapi-generator-python",
        language=PYTHON,
        package="openapi-generator-cli",
        programs=("java",),
        example="with_openapi_generator.py",
        generated="jobgate_openapi",
        generate=((*OPENAPI_GENERATOR, *("-g", "python", "-c", "openapi_generator.yaml", "--output", ".")),),
        compile=(
            # Some functions of the generated package have no annotations.
            (
                *(*MYPY, "--strict", "--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-calls"),
                *("--no-warn-return-any", "--implicit-reexport", "jobgate_openapi"),
            ),
            (*MYPY, "--strict", "--follow-imports=silent", "with_openapi_generator.py"),
        ),
        run=("{bin}/python", "with_openapi_generator.py"),
        warning=OPENAPI_GENERATOR_WARNING,
        tolerated=OPENAPI_GENERATOR_TOLERATED,
    ),
    Sdk(
        name="hey-api",
        language=TYPESCRIPT,
        package="@hey-api/openapi-ts",
        example="with-hey-api.ts",
        generated="client",
        generate=(
            (
                *("node", "node_modules/@hey-api/openapi-ts/bin/run.js", "--input", "{document}"),
                *("--output", "client", "--client", "@hey-api/client-fetch"),
            ),
        ),
        compile=(("node", "node_modules/typescript/bin/tsc", "--project", "tsconfig.hey-api.json"),),
        run=("node", "compiled/with-hey-api.js"),
        warning=ANY_WARNING,
    ),
    Sdk(
        name="orval",
        language=TYPESCRIPT,
        package="orval",
        example="with-orval.ts",
        generated="orval",
        generate=(("cp", "{document}", "openapi.json"), ("node", "node_modules/orval/dist/bin/orval.mjs")),
        compile=(("node", "node_modules/typescript/bin/tsc", "--project", "tsconfig.orval.json"),),
        run=("node", "compiled/with-orval.js"),
        warning=ANY_WARNING,
    ),
    Sdk(
        name="oapi-codegen",
        language=GO,
        package="github.com/oapi-codegen/oapi-codegen/v2",
        example="oapi-codegen/main.go",
        generated="oapi-codegen/jobgate",
        generate=(
            ("mkdir", "oapi-codegen/jobgate"),
            ("go", "tool", "oapi-codegen", "-config", "oapi-codegen.yaml", "{document}"),
        ),
        compile=_go("oapi-codegen"),
        run=("oapi-codegen/program",),
        warning=ANY_WARNING,
    ),
    Sdk(
        name="ogen",
        language=GO,
        package="github.com/ogen-go/ogen",
        example="ogen/main.go",
        generated="ogen/jobgate",
        generate=(
            (
                *("go", "tool", "ogen", "--config", "ogen.yaml", "--target", "ogen/jobgate", "--package", "jobgate"),
                *("--loglevel", "warn", "{document}"),
            ),
        ),
        compile=_go("ogen"),
        run=("ogen/program",),
        warning=r"^WARN\t(.+)$",
        tolerated=(
            'Ensuring "status" matching HTTP status code will not be enforced yet!',  # of a problem
            "Header name is not canonical, canonical name will be used",  # names of headers have no case
        ),
    ),
    Sdk(
        name="openapi-generator-java",
        language=JAVA,
        package="openapi-generator-cli",
        example="WithOpenapiGenerator.java",
        generated="client",
        generate=((*OPENAPI_GENERATOR, *("-g", "java", "-c", "openapi_generator.yaml", "--output", "client")),),
        compile=(
            ("sh", "-c", "find client/src/main/java -name '*.java' > sources.txt"),
            # The generated classes lack serialVersionUID, and use a deprecated method of Jackson.
            (*JAVAC, "-Xlint:all,-serial,-deprecation", "-cp", "lib/*", "@sources.txt"),
            (*JAVAC, "-Xlint:all", "-cp", "classes:lib/*", "WithOpenapiGenerator.java"),
        ),
        run=("java", "-cp", "classes:lib/*", "WithOpenapiGenerator"),
        warning=OPENAPI_GENERATOR_WARNING,
        tolerated=OPENAPI_GENERATOR_TOLERATED,
    ),
)
