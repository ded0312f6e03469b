"""The files, links, words of the vocabulary, settings and commands that the documentation names exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app.domain.kubernetes import labels
from app.domain.vocabulary import ConditionType, JobPhase, PendingCode, Reason, ReplicaPhase, StopReason
from app.settings import ENV_PREFIX, Settings
from jobgate.client.config import VARIABLES
from jobgate.server_commands import SERVER_COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "deploy/*.md", "examples/*.md", "dashboard/*.md")
    for path in ROOT.glob(pattern)
)
IDS = [str(page.relative_to(ROOT)) for page in PAGES]
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED_PATH = re.compile(
    r"`((?:app|cacheserver|devcluster|jobgate|tests|docs|deploy|examples|tools|migrations|openapi|bench|requirements)/[A-Za-z0-9_./-]+)`"
)
NAMED_PART = re.compile(r"`(\w+)` in `([a-z_]+/[a-z_/]+\.py)`")
NAMED_SETTING = re.compile(rf"\b{ENV_PREFIX}[A-Z_]*[A-Z]\b")
SECTIONS = ("**Context.**", "**Decision.**", "**Consequences.**", "**A change violates this when**", "**Enforced by**")
# Variables that Settings do not read, but tests, the node agent, clients or programs in pods.
OTHER_VARIABLES = {
    "JOBGATE_TEST_KUBECONFIG",
    "JOBGATE_TEST_GATEWAY_KUBECONFIG",
    "JOBGATE_TEST_DATABASE_URL",
    "JOBGATE_TEST_HELM",
    "JOBGATE_FAULT_POINTS",
    "JOBGATE_HOSTS_FILE",
    "JOBGATE_URL",
    "JOBGATE_TOKEN",
    "JOBGATE_NAMESPACE",
}


def read(path: str) -> str:
    return (ROOT / path).read_text()


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub generates for the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_link_targets_exist(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_named_files_exist(page: Path) -> None:
    for name in NAMED_PATH.findall(page.read_text()):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_named_parts_of_modules_exist(page: Path) -> None:
    for name, path in NAMED_PART.findall(page.read_text()):
        assert re.search(rf"\b{name}\b", read(path)), f"{name} in {path}"


def rows(text: str, heading: str) -> Iterator[list[str]]:
    """The cells of the tables below a heading, without separator rows."""
    section = re.split(r"^## ", text.partition(f"## {heading}\n")[2], flags=re.MULTILINE)[0]
    for line in section.splitlines():
        if line.startswith("|") and not set(line) <= set("|-: "):
            yield [cell.strip().strip("`") for cell in line.strip("|").split("|")]


def first_cells(heading: str) -> list[str]:
    return [cells[0] for cells in rows(read("docs/status.md"), heading)][1:]


def test_status_page_has_every_pending_code() -> None:
    assert sorted(first_cells("Pending reasons")) == sorted(PendingCode)


def test_status_page_has_every_bucket() -> None:
    assert sorted(first_cells("Aggregate")) == sorted(ReplicaPhase)


def test_status_page_has_every_condition() -> None:
    assert sorted(first_cells("Conditions")) == sorted(ConditionType)


def test_status_page_has_every_phase_and_reason() -> None:
    text = read("docs/status.md")
    phases = {cells[0] for cells in rows(text, "Phases")} & set(JobPhase)
    assert phases == set(JobPhase)
    written = set(re.findall(r"\w+", text))
    assert {str(reason) for reason in set_reasons()} <= written


def test_status_page_has_every_reason_of_a_stopped_attempt() -> None:
    (sentence,) = re.findall(r"an attempt that jobgate stopped has (.*?)\. A ", read("docs/status.md"), re.DOTALL)
    assert set(re.findall(r"`(\w+)`", sentence)) == set(StopReason)


def set_reasons() -> set[Reason]:
    """The reasons that the code sets."""
    source = "".join(path.read_text() for path in (ROOT / "app").rglob("*.py"))
    return {Reason[name] for name in re.findall(r"\bReason\.([A-Z_]+)\b", source) if name in Reason.__members__}


def test_settings_page_has_every_setting_with_its_default() -> None:
    documented = {cells[0]: cells[1] for cells in rows(read("docs/settings.md"), "All settings")}
    for name, field in Settings.model_fields.items():
        shown = documented[f"{ENV_PREFIX}{name.upper()}"]
        if field.default in (None, "", ()):
            assert not shown, name
        elif isinstance(field.default, tuple):
            assert shown == ",".join(field.default), name
        elif isinstance(field.default, float):
            assert float(shown) == field.default, name
        else:
            assert shown == str(field.default).lower(), name


def test_operations_page_has_every_command() -> None:
    documented = set(
        re.findall(r"jobgate ([a-z-]+)", " ".join(c[0] for c in rows(read("docs/operations.md"), "Commands")))
    )
    assert documented == set(SERVER_COMMANDS)


@pytest.mark.parametrize("pattern", [LINK, NAMED_PATH, NAMED_PART, NAMED_SETTING], ids=lambda one: one.pattern[:12])
def test_the_pages_have_what_the_tests_compare(pattern: re.Pattern[str]) -> None:
    assert len([page for page in PAGES if pattern.search(page.read_text())]) > 1


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_named_settings_exist(page: Path) -> None:
    known = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields} | OTHER_VARIABLES | VARIABLES
    for name in NAMED_SETTING.findall(page.read_text()):
        assert name in known or name.startswith("JOBGATE_DEV_"), name


def test_deployed_settings_exist() -> None:
    # OpenSSL reads SSL_CERT_FILE.
    known = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields} | {"SSL_CERT_FILE"}
    used: set[str] = set()
    for path in (ROOT / "deploy").glob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text()):
            spec = document.get("spec", {}).get("jobTemplate", document).get("spec", {})
            if "template" not in spec:
                continue
            spec = spec["template"]["spec"]
            for container in (*spec.get("initContainers", ()), *spec["containers"]):
                used |= {variable["name"] for variable in container["env"]}
    assert f"{ENV_PREFIX}DATABASE_URL" in used
    assert used <= known


def test_api_page_has_every_annotation_that_clients_may_set() -> None:
    written = set(re.findall(r"^\| `(jobgate\.dev/[a-z-]+)` \|", read("docs/api.md"), re.MULTILINE))
    assert written == labels.CLIENT_ANNOTATIONS


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=lambda path: path.stem)
def test_decisions_have_all_sections_and_are_listed(path: Path) -> None:
    text = path.read_text()
    assert [section for section in SECTIONS if section not in text] == []
    title = text.splitlines()[0].removeprefix("# ")
    assert title.startswith(path.stem[:4])
    assert f"- [{title}](decisions/{path.name})" in read("docs/README.md")


def test_the_map_has_every_page_and_the_decisions_in_order() -> None:
    listed = [target.partition("#")[0] for target in LINK.findall(read("docs/README.md"))]
    docs = ROOT / "docs"
    assert {str(path.relative_to(docs)) for path in docs.rglob("*.md")} - {"README.md"} <= set(listed)
    decisions = [path for path in listed if path.startswith("decisions/")]
    assert decisions == sorted(decisions)
