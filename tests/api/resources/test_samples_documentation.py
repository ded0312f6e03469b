"""The section of docs/api.md about SampleSets and SampleJobs: its commands work, and it names all filters."""

import re
import shlex
from pathlib import Path
from typing import Final

from app.domain.cache.vocabulary import RemovalStage
from app.running.application import create_app, resources
from tests.support.gateways.gateway import Gateway

PAGE = (Path(__file__).parents[3] / "docs/api.md").read_text()
SECTION = PAGE.partition("\n## SampleSets and SampleJobs\n")[2].partition("\n## ")[0]
QUOTED = set(re.findall(r"`([^`\n]+)`", PAGE))
ANSWERS: Final = [201, 200, 201, 200, 202, 200, 202]


def commands() -> list[tuple[str, str, dict[str, str], str]]:
    """Return method, path, headers and body of every curl command."""
    script = SECTION.partition("```sh\n")[2].partition("```")[0].replace("\\\n", " ")
    found = []
    for command in re.split(r"^curl ", script, flags=re.MULTILINE)[1:]:
        arguments, method, url, headers, body = shlex.split(command), "", "", {}, ""
        while arguments:
            match arguments.pop(0):
                case "-X":
                    method = arguments.pop(0)
                case "-H":
                    name, _, value = arguments.pop(0).partition(": ")
                    headers[name] = value
                case "-d":
                    body = arguments.pop(0)
                case "-i":
                    pass
                case word:
                    url = word.removeprefix("$JOBGATE")
        found.append((method or ("POST" if body else "GET"), url, headers, body))
    return found


async def test_the_commands_of_the_page_work(gateway: Gateway) -> None:
    statuses = []
    for method, url, headers, body in commands():
        answer = await gateway.client.request(method, url, headers=headers, content=body.encode())
        statuses.append(answer.status_code)
    assert statuses == ANSWERS


def test_the_page_names_all_stages_filters_and_events() -> None:
    assert set(RemovalStage) <= QUOTED
    paths = create_app().openapi()["paths"]
    for resource in resources():
        listed = paths[resource.collection_path]["get"]["parameters"]
        filters = {parameter["name"] for parameter in listed if parameter["in"] == "query"}
        assert filters <= QUOTED
        assert {resource.event, resource.name} <= QUOTED
