"""Which manifests of the golden cases and of the examples need an exemption from the pod policy, and from what."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from app.domain.kinds.registry import JOB_KINDS
from app.domain.planning import Planner
from app.domain.policy import Level, PodPolicy
from app.settings import Settings
from app.settings.development import dev_defaults

ROOT = Path(__file__).parents[3]
# Upstream's TrainingJobs for NCCL use the node's network, its MxJobs mount a driver from the node.
EXEMPTIONS = {
    "tests/data/training_job/everything/manifest.yaml": {"HostNetwork"},
    "tests/data/training_job/nccl/manifest.yaml": {"HostNetwork"},
    "tests/data/mx_job/everything/manifest.yaml": {"HostPathVolumes"},
}


def documents() -> dict[str, Any]:
    """Every job manifest by its path."""
    files = [*ROOT.glob("tests/data/*_job/*/manifest.yaml"), *ROOT.glob("examples/**/*.yaml")]
    # The objects of Kueue are several documents of one file.
    found = {str(file.relative_to(ROOT)): [*yaml.safe_load_all(file.read_text(encoding="utf-8"))] for file in files}
    jobs = {path: docs[0] for path, docs in found.items() if len(docs) == 1}
    return {path: doc for path, doc in jobs.items() if (doc.get("apiVersion"), doc.get("kind")) in JOB_KINDS}


DOCUMENTS = documents()
_DEV: dict[str, Any] = dev_defaults()
OF_DEVELOPMENT = Settings(**_DEV).policy()


def suffix() -> str:
    return "xxxxx"


def violated(document: dict[str, Any], policy: PodPolicy) -> set[str]:
    """The controls that a manifest violates, once it has been accepted without a policy."""
    namespace = document["metadata"].get("namespace", "team")
    draft = Planner(installation="i", policy=OF_DEVELOPMENT).draft(document, namespace, suffix)
    return {error.code for error in policy.violations(draft.accepted.kind.pod_templates(document, draft.accepted))}


def test_the_exemptions_are_of_manifests_that_exist() -> None:
    assert len(DOCUMENTS) > 30
    assert set(EXEMPTIONS) <= set(DOCUMENTS)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_the_default_policy_accepts_what_the_kinds_need(path: str) -> None:
    assert violated(DOCUMENTS[path], PodPolicy()) == EXEMPTIONS.get(path, set())


@pytest.mark.parametrize("path", DOCUMENTS)
def test_development_accepts_everything(path: str) -> None:
    assert violated(DOCUMENTS[path], OF_DEVELOPMENT) == set()


def test_a_training_job_cannot_meet_the_restricted_level() -> None:
    found = violated(DOCUMENTS["examples/training-job/parameter-server.yaml"], PodPolicy(level=Level.RESTRICTED))
    assert "RunAsNonRoot" in found
