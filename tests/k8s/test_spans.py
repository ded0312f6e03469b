"""The names of spans of requests to the API server: verb and resource, and no name of an object."""

import pytest

from app.k8s.session.spans import request_name


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("POST", "/api/v1/namespaces/team/pods", "create pods"),
        ("GET", "/api/v1/namespaces/team/pods", "list pods"),
        ("GET", "/api/v1/pods", "list pods"),
        ("GET", "/api/v1/namespaces/team/pods/a-0", "get pods"),
        ("PATCH", "/api/v1/namespaces/team/pods/a-0", "patch pods"),
        ("PUT", "/api/v1/namespaces/team/pods/a-0/status", "update pods/status"),
        ("DELETE", "/api/v1/namespaces/team/pods/a-0", "delete pods"),
        ("GET", "/api/v1/namespaces/team/pods/a-0/log", "get pods/log"),
        ("POST", "/api/v1/namespaces/team/pods/a-0:80/proxy/secret/path", "create pods/proxy"),
        ("GET", "/api/v1/namespaces", "list namespaces"),
        ("GET", "/api/v1/namespaces/team", "get namespaces"),
        ("GET", "/api/v1/nodes/node-1", "get nodes"),
        ("POST", "/apis/apps/v1/namespaces/team/statefulsets", "create statefulsets"),
        ("GET", "/apis/scheduling.k8s.io/v1/priorityclasses/high", "get priorityclasses"),
        ("GET", "/version", "GET"),
        ("GET", "/apis", "GET"),
        ("GET", "/api/v1", "GET"),
    ],
)
def test_a_span_is_named_by_verb_and_resource(method: str, path: str, name: str) -> None:
    assert request_name(method, path) == name
