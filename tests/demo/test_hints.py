"""The commands that the demo prints work: they ask for routes of the API, with parameters that these routes take."""

import re
from urllib.parse import parse_qs, urlsplit

from app.demo.run import hints
from app.main import create_app

URL = "http://127.0.0.1:8080"


def test_every_path_that_the_demo_prints_is_a_route() -> None:
    asked = [urlsplit(url) for url in re.findall(rf"{URL}[^\s']*", hints(URL, "/tmp/kubeconfig"))]
    assert len(asked) >= 6
    for url in asked:
        names = [
            {parameter["name"] for parameter in item["get"]["parameters"]}
            for path, item in create_app().openapi()["paths"].items()
            if "get" in item and re.fullmatch(re.sub(r"{\w+}", "[^/]+", path), url.path)
        ]
        assert any(names), url.path
        assert any(set(parse_qs(url.query)) <= known for known in names), url
