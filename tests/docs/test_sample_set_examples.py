"""The examples of the data cache are valid, belong to one SampleSet, and use one directory."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from app.demo.sample_story import CACHE, HOME, NAME
from app.domain.cache.limits import CacheLimits
from app.domain.cache.source_limits import SourceLimits
from app.domain.kinds.sample_kind import SampleKind
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.planning import Planner
from app.settings.development import dev_defaults
from tests.docs.test_docs import read

EXAMPLES = Path(__file__).parents[2] / "examples" / "sample-set"
KINDS: dict[str, SampleKind] = {"SampleSet": SAMPLE_SET, "SampleJob": SAMPLE_JOB}
FILES = sorted(path.name for path in EXAMPLES.iterdir())


def document(file: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / file).read_text())
    return found


@pytest.mark.parametrize("file", FILES)
def test_the_example_is_valid(file: str) -> None:
    found = document(file)
    if found["kind"] in KINDS:
        KINDS[found["kind"]].accept(found, CacheLimits(namespace="team", sources=SourceLimits(directories=(HOME,))))
    elif found["kind"] != "Secret":
        Planner(installation="i").draft(found, "team", lambda: "xxxxx")


@pytest.mark.parametrize("file", FILES)
def test_the_example_belongs_to_the_sample_set(file: str) -> None:
    found = document(file)
    spec = found.get("spec", {})
    named = {
        "Secret": found["metadata"]["name"],
        "SampleSet": spec.get("secretRef", {}).get("name"),
        "SampleJob": spec.get("sampleSetRef", {}).get("name"),
        "GenericJob": NAME if f"claimName: {NAME}," in (EXAMPLES / file).read_text() else None,
    }
    assert named[found["kind"]] == NAME


@pytest.mark.parametrize("file", FILES)
def test_the_paths_of_the_example_are_in_one_directory(file: str) -> None:
    text = (EXAMPLES / file).read_text()
    assert text.count("/var/") == text.count(f"{HOME}/") + text.count(CACHE)


@pytest.mark.parametrize("file", FILES)
def test_the_page_names_the_example(file: str) -> None:
    assert file in read("examples/README.md") or f" {file.removesuffix('.yaml')}" in read("examples/README.md")


def test_the_embedded_configuration_allows_the_data_of_the_examples_and_nothing_else() -> None:
    assert dev_defaults()["file_directories"] == (HOME,)
    assert not dev_defaults().keys() & {"source_hosts", "source_schemes"}
