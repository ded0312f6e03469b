"""docs/kinds/sample-set.md matches the code: fields, codes, storages, phases, events and names."""

import re
from pathlib import Path

from app.domain import cache
from app.domain.cache.manifests.stateful_set import TOKEN_FILE
from app.domain.cache.naming import NAME_MAX
from app.domain.cache.reconcile.cache_status import CacheStatus
from app.domain.cache.reconcile.events import job_word
from app.domain.cache.source_limits import STORAGES
from app.domain.cache.vocabulary import JobType, SampleJobPhase, SetPart, SetPhase
from app.domain.kinds import sample_kind, samples
from app.domain.kinds.samples.specs.directories import DEFAULT_CACHE_DIR
from app.domain.kinds.samples.specs.mount_options import JuiceFSMountOptions
from app.domain.kinds.samples.specs.sample_job import SampleJobSpec, SyncOptions, WarmupOptions
from app.domain.kinds.samples.specs.sample_set import MUTABLE_FIELDS, SampleSetSpec
from app.domain.kinds.spec.model import SpecModel
from tests.docs.test_docs import read, rows

PAGE = "docs/kinds/sample-set.md"
# Codes of every kind for the shape of a manifest.
OF_ALL_KINDS = {"InvalidType", "UnknownField"}
OF_SHAPE = {"Required", "OutOfRange", "TooShort", "InvalidValue"}


def names(model: type[SpecModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def quoted(text: str) -> set[str]:
    return set(re.findall(r"`([^`\s]+)`", text))


def section(heading: str) -> str:
    return read(PAGE).partition(f"## {heading}\n")[2].partition("\n## ")[0]


def test_every_field_is_documented() -> None:
    documented = {part for name in quoted(section("SampleSet")) for part in re.split(r"\.|\[\]", name)}
    assert names(SampleSetSpec) <= documented
    assert names(SampleJobSpec) | {"sampleSetRef.name"} <= quoted(section("SampleJob")) | {"sampleSetRef"}
    assert names(SyncOptions) | names(WarmupOptions) <= quoted(section("SampleJob"))


def test_what_may_be_changed_is_documented() -> None:
    sentence = section("SampleSet").partition("What may be changed later:")[2]
    assert {field.rpartition("/")[2] for field in MUTABLE_FIELDS} == {
        name.rpartition(".")[2] for name in quoted(sentence)
    }


def test_every_mount_option_is_documented() -> None:
    assert names(JuiceFSMountOptions) <= quoted(section("Mount options"))
    assert f"`{DEFAULT_CACHE_DIR}`" in section("Mount options")


def test_every_storage_is_documented() -> None:
    assert set(STORAGES) <= set(re.findall(r"\w+", section("Sources")))


def test_every_code_is_documented() -> None:
    documented = {
        code for cells in rows(read(PAGE), "What is refused") for code in cells[0].split(", ") if code != "code"
    }
    folders = (Path(package.__path__[0]) for package in (cache, samples))
    paths = [Path(sample_kind.__file__), *(path for folder in folders for path in folder.rglob("*.py"))]
    source = "".join(path.read_text() for path in paths)
    raised = set(re.findall(r'(?:refusal|Wrong|invalid_manifest)\(\s*"([A-Z]\w+)"', source))
    raised |= set(re.findall(r'(?:pointer|at|base|pointer_to\([^()]*\)|annotations", key\)), "([A-Z]\w+)"', source))
    assert raised <= documented | OF_ALL_KINDS
    assert documented <= raised | OF_SHAPE
    assert {"NameTooLong", "PathNotValid", "IncompleteKeys", "CredentialsInSource"} <= raised


def test_every_field_of_the_status_is_documented() -> None:
    documented = {name for cells in rows(read(PAGE), "Cache status") for name in re.findall(r"\w+", cells[0])}
    filled = CacheStatus(**dict.fromkeys(CacheStatus.__dataclass_fields__, "x"))
    assert documented - {"field"} == filled.native().keys()


def test_every_phase_is_documented() -> None:
    for heading, phases in (("Phases of a SampleSet", SetPhase), ("Phases of a SampleJob", SampleJobPhase)):
        documented = [cells[0] for cells in rows(read(PAGE), heading)][1:]
        assert sorted(documented) == sorted(phase.value or "(empty)" for phase in phases), heading


def test_every_event_is_documented() -> None:
    text = section("Events")
    assert {str(resource) for resource in SetPart} <= set(re.findall(r"\w+", text))
    assert {job_word(kind) for kind in JobType} <= set(re.findall(r"\w+", text))


def test_names_and_limits_are_documented() -> None:
    assert f"{NAME_MAX} characters or fewer" in read(PAGE)
    assert f"`{TOKEN_FILE}`" in read(PAGE)
