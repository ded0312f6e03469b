"""The paths that users give to the commands of the embedded cluster. They may be relative to the current directory."""

import ast
import asyncio
from pathlib import Path
from typing import Any

import pytest

import devcluster
from devcluster.__main__ import parse
from devcluster.node.__main__ import parse_arguments
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.clusters.kube import Cluster, connect
from tests.support.clusters.nodes import running_node
from tests.support.waiting import until

SOURCES = Path(devcluster.__file__).parent
PODS = "/api/v1/namespaces/default/pods"


def types_of_options() -> dict[str, str]:
    """Return the type of each option of both commands, as written in the source."""
    calls = [
        node
        for path in (SOURCES / "__main__.py", SOURCES / "node" / "__main__.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "parser.add_argument"
    ]
    return {
        str(ast.literal_eval(call.args[0])): ast.unparse(keyword.value)
        for call in calls
        for keyword in call.keywords
        if keyword.arg == "type"
    }


def test_no_option_keeps_a_relative_path() -> None:
    types = types_of_options()
    assert types["--data-dir"] == "absolute_path"
    assert {name for name, kind in types.items() if kind == "Path"} == set()


def test_relative_paths_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("images.yaml", "juicefs"):
        (tmp_path / name).touch(mode=0o755)
    of_both = ["--data-dir", "state", "--kubeconfig", "config", "--images", "images.yaml"]
    settings, _ = parse(of_both)
    assert (settings.data_dir, settings.kubeconfig) == (tmp_path / "state", tmp_path / "config")
    assert settings.images == tmp_path / "images.yaml"
    given = vars(parse_arguments([*of_both, "--host-root", "root", "--juicefs", "./juicefs"]))
    assert {name: value for name, value in given.items() if isinstance(value, Path)} == {
        "data_dir": tmp_path / "state",
        "kubeconfig": tmp_path / "config",
        "images": tmp_path / "images.yaml",
        "host_root": tmp_path / "root",
        "juicefs": tmp_path / "juicefs",
    }
    defaults = parse_arguments(["--kubeconfig", "config", "--juicefs", "sh"])
    assert defaults.data_dir == tmp_path / ".jobgate" / "nodes" / "node-1"
    assert defaults.juicefs.is_absolute()
    assert defaults.juicefs.name == "sh"
    assert parse_arguments(["--kubeconfig", "config", "--juicefs", "./none"]).juicefs == tmp_path / "none"


async def run_pod(cluster: Cluster, node: str) -> str:
    """Run a pod on the node until it ends, and return its phase."""
    container = {"name": "main", "image": "python:3.12-slim", "command": ["python", "-c", "print(7)"]}
    spec = {"nodeName": node, "restartPolicy": "Never", "containers": [container]}
    async with connect(cluster) as api:
        (await api.post(PODS, {"metadata": {"name": "one"}, "spec": spec})).ok()

        async def phase() -> Any:
            return (await api.get(f"{PODS}/one")).ok()["status"].get("phase")

        return str(await until(phase, lambda found: found in ("Succeeded", "Failed")))


def test_a_node_with_a_relative_data_directory_runs_containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        running_embedded_cluster(tmp_path / "cluster", "--nodes", "0") as cluster,
        running_node(cluster, Path("state")) as node,
    ):
        assert asyncio.run(run_pod(cluster, node)) == "Succeeded"
