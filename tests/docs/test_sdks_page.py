"""The code in docs/sdks.md is the code that `make sdks` runs, and its versions are those of the lock files."""

import re
import textwrap
from pathlib import Path

import pytest

from tools.sdks.building import PROJECTS
from tools.sdks.catalog import LANGUAGES, SDKS, Sdk

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sdks.md").read_text()
BLOCK = re.compile(r"^```\w+ (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(PAGE)
NAMES = [sdk.name for sdk in SDKS]
LEAST_BLOCKS = 6  # create a client, submit, follow, watch, read errors, read pages


@pytest.mark.parametrize(("path", "code"), BLOCKS, ids=[f"{Path(path).name}-{n}" for n, (path, _) in enumerate(BLOCKS)])
def test_blocks_are_parts_of_programs(path: str, code: str) -> None:
    assert textwrap.dedent(code) in (ROOT / path).read_text() or code in (ROOT / path).read_text()


@pytest.mark.parametrize("sdk", SDKS, ids=NAMES)
def test_every_client_has_a_section_with_each_part_of_its_program(sdk: Sdk) -> None:
    program = f"examples/clients/{sdk.language}/{sdk.example}"
    section = PAGE.partition(f": {sdk.name}\n")[2].partition("\n## ")[0]
    assert len([path for path, _ in BLOCK.findall(section) if path == program]) >= LEAST_BLOCKS
    assert (ROOT / program).is_file()


@pytest.mark.parametrize("sdk", SDKS, ids=NAMES)
def test_versions_are_those_of_the_lock_files(sdk: Sdk) -> None:
    language = next(language for language in LANGUAGES if language.name == sdk.language)
    locked = "".join((ROOT / lock).read_text() for lock in language.locks)
    (row,) = [line for line in PAGE.splitlines() if f"`examples/clients/{sdk.language}/{sdk.example}`" in line]
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
