from typing import Any

import msgspec
import pytest

from app.domain.redaction import REDACTED, Redaction, SecretSelection, is_needed, is_redacted, json_form

SECRET = "s3cr3t-value"
PLAIN, REFERENCE = (
    {"name": "A", "value": SECRET},
    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
)
EVERY = SecretSelection(env=frozenset({"*"}))
SAID = f'say "{SECRET}"'
PEM = "-----BEGIN KEY-----\nabc/def+1\n-----END KEY-----\n"


def redaction(selection: SecretSelection, *documents: Any) -> Redaction:
    return Redaction.of(selection, documents)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"env": [PLAIN, REFERENCE]}, {"env": [{"name": "A", "value": REDACTED}, REFERENCE]}),
        ({"env": [{"name": "A", "value": ""}, {"name": "C"}]}, {"env": [{"name": "A", "value": ""}, {"name": "C"}]}),
        ({"tasks": [{"template": {"spec": {"initContainers": [{"env": [PLAIN]}]}}}]}, None),
        ({"spec": {"collector": {"template": {"spec": {"containers": [{"name": "c", "env": [PLAIN]}]}}}}}, None),
        ({"env": "text", "args": ["--env=a"]}, {"env": "text", "args": ["--env=a"]}),
        ({"env": [None, 1]}, {"env": [None, 1]}),
        ([], []),
    ],
)
def test_values_of_variables_are_removed_wherever_they_are_and_nothing_else(document: Any, expected: Any) -> None:
    found = redaction(EVERY, document).document(document)
    assert SECRET not in repr(found)
    if expected is not None:
        assert found == expected
    assert redaction(EVERY, found).document(found) == found
    assert is_redacted(found) is (SECRET in repr(document))
    assert not is_redacted(document)


@pytest.mark.parametrize(
    ("selection", "document"),
    [
        (SecretSelection(env=frozenset({"A"})), {"env": [PLAIN], "args": [f"--password={SECRET}"]}),
        (SecretSelection(fields=("/spec/args/1",)), {"spec": {"args": ["a", SECRET], "b": SECRET}}),
        (SecretSelection(fields=("/spec",)), {"spec": {"args": ["a", {"b": [SECRET]}]}}),
        (SecretSelection(fields=("/a~1b/c~0",)), {"a/b": {"c~": SECRET}}),
        (SecretSelection(texts=(SECRET,)), {"url": f"https://user:{SECRET}@host", f"example.com/{SECRET}": ""}),
        (SecretSelection(texts=(SECRET,)), {"applied": msgspec.json.encode({"env": [PLAIN]}).decode()}),
        (
            SecretSelection(texts=('say "s3cr3t-value"',)),
            {"applied": msgspec.json.encode('say "s3cr3t-value"').decode()},
        ),
        (SecretSelection(texts=(f"{SECRET}\nsecond line",)), {"lastLines": [f"> {SECRET}"]}),
        (SecretSelection(texts=(SECRET, f"{SECRET}-and-more")), {"a": f"{SECRET}-and-more"}),
    ],
)
def test_a_selected_value_is_removed_from_manifest_and_records(selection: SecretSelection, document: Any) -> None:
    redact = redaction(selection, document)
    found = redact.document(document)
    assert SECRET not in repr(found)
    assert "and-more" not in repr(found)
    assert redaction(selection, found).document(found) == found
    said = f'é say "{SECRET}"\n'
    assert SECRET not in redact.text(said)
    assert redact.data(said.encode()).decode() == redact.text(said)
    assert redact.record({"message": [said]}) == {"message": [redact.text(said)]}


def test_the_lines_of_a_key_are_removed_from_logs() -> None:
    redact = redaction(SecretSelection(texts=(PEM,)))
    assert redact.text("got abc/def+1 there") == f"got {REDACTED} there"


def test_a_short_value_and_those_of_all_variables_are_removed_in_place_only() -> None:
    document = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "production"}]}
    for selection in (SecretSelection(env=frozenset({"A"})), EVERY):
        redact = redaction(selection, document)
        assert not redact.reaches_records
        assert redact.document(document)["env"][0]["value"] == REDACTED
        assert redact.text("1 production") == "1 production"


def test_only_the_object_of_a_stored_answer_is_redacted() -> None:
    answer = {"items": [{"object": {"uid": "1", "env": [PLAIN]}}, {"uid": "2", "env": [PLAIN]}]}
    found = redaction(EVERY).answer(answer, "1")
    assert found["items"][0]["object"]["env"][0]["value"] == REDACTED
    assert found["items"][1] == answer["items"][1]


@pytest.mark.parametrize("text", ["Running", "redact", "Succeed", "ImagePull"])
def test_words_of_the_wire_format_cannot_be_removed(text: str) -> None:
    assert is_needed(text)


def test_values_that_are_words_stay_in_records() -> None:
    document = {"env": [{"name": "A", "value": "Succeeded"}]}
    redact = redaction(SecretSelection(env=frozenset({"A"})), document)
    assert redact.document(document)["env"][0]["value"] == REDACTED
    assert redact.record({"phase": "Succeeded"}) == {"phase": "Succeeded"}


@pytest.mark.parametrize(("text", "form"), [("plain", "plain"), (SAID, 'say \\"s3cr3t-value\\"'), ("a\nb", "a\\nb")])
def test_a_text_inside_a_json_string(text: str, form: str) -> None:
    assert json_form(text) == form
