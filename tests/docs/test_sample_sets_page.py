"""docs/sample-sets.md documents every stage of a removal, every action and every way to a server."""

import re
from typing import get_args

from app.domain.cache.reconcile.values import CacheAction
from app.domain.cache.vocabulary import RemovalStage
from app.loops.cache.runtime_servers import TOKEN_HEADER
from app.settings import Settings
from tests.docs.test_docs import read, rows

PAGE = "docs/sample-sets.md"
# What the page calls the actions of a reconcile.
WORDS = {
    "Create": "create an object",
    "Delete": "delete an object",
    "Scale": "scale the StatefulSet, label a node",
    "LabelNode": "scale the StatefulSet, label a node",
    "PostOptions": "post options to a server",
    "Terminate": "end others' jobs (`terminate`)",
}


def first_cells(heading: str) -> list[str]:
    return [cells[0] for cells in rows(read(PAGE), heading)][1:]


def test_every_stage_of_a_removal_is_documented_in_order() -> None:
    assert first_cells("Removal") == [str(stage) for stage in RemovalStage]


def test_the_repetition_of_every_action_is_documented() -> None:
    assert {action.__name__ for action in get_args(CacheAction)} == WORDS.keys()
    assert [*dict.fromkeys(WORDS.values())] == first_cells("A reconcile")


def test_every_way_to_a_server_is_documented() -> None:
    ways = get_args(Settings.model_fields["runtime_access"].annotation)
    assert sorted(first_cells("Two ways to a server")) == sorted(ways)
    assert set(ways) <= set(re.findall(r"[\w-]+", read(PAGE).partition("## A reconcile")[0]))
    assert f"`{TOKEN_HEADER}`" in read(PAGE)
