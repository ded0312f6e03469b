"""The groups in which usage is added up."""

from dataclasses import replace

from app.domain.usage.groups import OTHER, UsageGroup, chosen_labels

GROUP = UsageGroup(namespace="team-a", user_id="u", user_name="ann", kind="MxJob")


def test_a_coarse_group_has_no_queue_and_no_label_that_a_client_chose() -> None:
    chosen = replace(GROUP, queue="fast", labels=(("project", "x"),))
    assert chosen.coarse == replace(GROUP, queue=OTHER, labels=(("project", OTHER),))
    assert GROUP.coarse == GROUP


def test_only_chosen_labels_are_in_a_group() -> None:
    assert chosen_labels({"team": "a", "project": "x", "other": "y"}, ["team", "project", "cost"]) == (
        ("project", "x"),
        ("team", "a"),
    )
