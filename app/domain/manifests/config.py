"""Renders the ConfigMaps of a job: the anchor and, if the job is elastic, its list of hosts.

The anchor owns all other objects of a job and remains if the database is lost. It never contains the manifest, whose
env may be secret.
"""

from typing import Final

import msgspec

from app.domain.kubernetes import labels
from app.domain.manifests.metadata import job_labels, owned_metadata
from app.domain.plan import HostsPlan, JobPlan, Manifest
from app.domain.vocabulary import JobPhase

HOSTS_FILE: Final = "hosts.json"


def anchor_manifest(plan: JobPlan, terminal_phase: JobPhase | str | None = None) -> Manifest:
    identity = plan.identity
    annotations = {labels.GENERATION: str(identity.generation)}
    if terminal_phase is not None:
        annotations[labels.TERMINAL_PHASE] = str(terminal_phase)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": labels.anchor_name(identity.uid),
            "namespace": identity.namespace,
            "labels": job_labels(identity),
            "annotations": annotations,
        },
        "data": {
            "apiVersion": identity.api_version,
            "kind": identity.kind,
            "name": identity.name,
            "uid": identity.uid,
        },
    }


def hosts_manifest(plan: JobPlan, hosts: HostsPlan, anchor_uid: str | None) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned_metadata(plan.identity, hosts.name, {}, anchor_uid),
        "data": hosts_data(plan, hosts),
    }


def hosts_data(plan: JobPlan, hosts: HostsPlan) -> dict[str, str]:
    """Return the files of the list: a JSON file, and for each task a text file with a comment and one host per line."""
    generation = plan.identity.generation
    whole = msgspec.json.encode({"generation": generation, "hosts": hosts.hosts}).decode()
    lines = {
        f"{task}.hosts": "".join(f"{line}\n" for line in (f"# generation {generation}", *names))
        for task, names in hosts.hosts.items()
    }
    return {HOSTS_FILE: whole, **lines}
