"""The code in docs/sdks is the code that `make sdks` runs, and its versions are those of the lock files."""

import re
import textwrap
from pathlib import Path

import pytest

from tools.sdks.building import PROJECTS, find_language
from tools.sdks.catalog import SDKS, Sdk

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "sdks.md").read_text()
PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "docs" / "sdks").glob("*.md"))}
BLOCK = re.compile(r"^```\w+ (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [block for page in PAGES.values() for block in BLOCK.findall(page)]
NAMES = [sdk.name for sdk in SDKS]
INDENTS = ("", "  ", "    ")  # of a method, or of a part of a function
LEAST_BLOCKS = 6  # create a client, submit, follow, watch, read errors, read pages


@pytest.mark.parametrize(("path", "code"), BLOCKS, ids=[f"{Path(path).name}-{n}" for n, (path, _) in enumerate(BLOCKS)])
def test_blocks_are_parts_of_programs(path: str, code: str) -> None:
    program = (ROOT / path).read_text()
    assert any(textwrap.indent(code, indent) in program for indent in INDENTS)


@pytest.mark.parametrize("sdk", SDKS, ids=NAMES)
def test_every_client_has_a_section_with_each_part_of_its_program(sdk: Sdk) -> None:
    program = f"examples/clients/{sdk.language}/{sdk.example}"
    generator = sdk.name.removesuffix(f"-{sdk.language}")
    heading = rf"^## {generator}(?:-{sdk.language})?$"
    section = re.split(heading, PAGES[sdk.language], flags=re.MULTILINE)[1].partition("\n## ")[0]
    assert len([path for path, _ in BLOCK.findall(section) if path == program]) >= LEAST_BLOCKS
    assert (ROOT / program).is_file()


@pytest.mark.parametrize("sdk", SDKS, ids=NAMES)
def test_versions_are_those_of_the_lock_files(sdk: Sdk) -> None:
    language = find_language(sdk.language)
    languages = [language, *(find_language(name) for name in language.needs)]
    locked = "".join((ROOT / lock).read_text() for language in languages for lock in language.locks)
    (row,) = [line for line in TABLE.splitlines() if f"`examples/clients/{sdk.language}/{sdk.example}`" in line]
    version = row.split("|")[3].strip()
    assert re.search(
        rf'^[\s"]*(?:node_modules/)?{re.escape(sdk.package)}\W+(?:"version": ")?v?{re.escape(version)}\b',
        locked,
        re.MULTILINE,
    )


def test_every_program_is_of_a_client() -> None:
    programs = {
        path.relative_to(PROJECTS) for pattern in ("*.py", "*.ts", "*.go", "*.java") for path in PROJECTS.rglob(pattern)
    }
    assert {str(path) for path in programs} == {f"{sdk.language}/{sdk.example}" for sdk in SDKS}
