"""Only a Job that an operator creates migrates the schema."""

from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"


def commands(value: Any) -> list[tuple[str, list[str]]]:
    """Return the command of each container within a manifest, with the kind of the manifest."""
    found = []
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            found += [(value["kind"], node["command"])] if isinstance(node.get("command"), list) else []
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return found


def test_no_process_migrates_the_schema_when_it_starts() -> None:
    documents = [yaml.safe_load_all(path.read_text()) for path in sorted(DEPLOY.glob("*.yaml"))]
    manifests = [manifest for each in documents for manifest in each if manifest]
    found = [each for manifest in manifests if "kind" in manifest for each in commands(manifest)]
    assert [kind for kind, command in found if "migrate" in command] == ["CronJob"]
    assert [kind for kind, command in found if "serve" in command] == ["Deployment"] * 3
