"""The requests of a pod are those that the scheduler counts."""

from collections.abc import Mapping
from typing import Any

import pytest

from app.domain.kubernetes.pod_requests import pod_requests


def container(requests: Mapping[str, str] | None = None, limits: Mapping[str, str] | None = None, **more: Any) -> Any:
    return {"resources": {"requests": requests, "limits": limits}, **more}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({}, None),
        ({"containers": [{}, {"resources": None}]}, None),
        ({"containers": [container({"cpu": "1"}), container({"cpu": "500m"})]}, "1.5"),
        ({"containers": [container(None, {"cpu": "2"})]}, "2"),
        ({"containers": [container({"cpu": "1"}, {"cpu": "2"})]}, "1"),
        ({"initContainers": [container({"cpu": "3"})], "containers": [container({"cpu": "1"})]}, "3"),
        ({"initContainers": [container({"cpu": "1"})], "containers": [container({"cpu": "2"})]}, "2"),
        (
            {
                "initContainers": [container({"cpu": "1"}, restartPolicy="Always"), container({"cpu": "3"})],
                "containers": [container({"cpu": "2"})],
            },
            "4",
        ),
        ({"containers": [container({"cpu": "1"})], "overhead": {"cpu": "250m"}}, "1.25"),
        ({"containers": [container({"cpu": "1"})], "resources": {"requests": {"cpu": "3"}}}, "3"),
        ({"containers": [container({"cpu": "1"})], "resources": {"requests": {"memory": "1Gi"}}}, "1"),
        ({"containers": [{}], "resources": {"limits": {"cpu": "64"}}}, "64"),
        ({"containers": [container({"cpu": "1"})], "resources": {"limits": {"cpu": "64"}}}, "1"),
        ({"containers": [{}], "resources": {"limits": {"cpu": "64"}, "requests": {"cpu": "2"}}}, "2"),
    ],
)
def test_the_requests_of_a_pod_are_those_that_the_scheduler_counts(spec: dict[str, Any], cpu: str | None) -> None:
    found = pod_requests(spec)
    assert (str(found["cpu"].normalize()) if "cpu" in found else None) == cpu


def test_huge_pages_of_a_pod_are_its_limit() -> None:
    pages = {"hugepages-2Mi": "2Mi"}
    spec = {"containers": [container(pages, pages)], "resources": {"limits": {"hugepages-2Mi": "4Mi"}}}
    assert pod_requests(spec) == {"hugepages-2Mi": 4 * 2**20}
