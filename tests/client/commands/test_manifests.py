"""Manifests of `-f`: documents, changes, and the lines of fields."""

from typing import Any

import pytest
import yaml

from app.domain.decoding import decode_yaml
from app.domain.errors import MalformedDocument
from jobgate.cli.manifests.documents import Document, ManifestError, documents, with_changes

TEXT = """\
# a comment
kind: GenericJob
metadata: {name: tour}
spec:
  replicaSpecs:
    - type: worker
      replica: 2
    - {type: ps,
       replicas: 1}
"""


def decoded(text: str) -> Any:
    """Return what the gateway reads."""
    (content,) = decode_yaml(text.encode())
    return content


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (TEXT, [1]),
        (f"---\n{TEXT}", [1]),
        (f"{TEXT}---\n{TEXT}", [1, 10]),
        ("---\n# nothing\n---\n", []),
        ("a: 1\n--- # second\nb: 2\n", [1, 2]),
        ('{"kind": "GenericJob"}', [1]),
        ("a: ---\n", [1]),
    ],
)
def test_documents_begin_at_their_lines(text: str, lines: list[int]) -> None:
    assert [document.first_line for document in documents("f", text)] == lines


@pytest.mark.parametrize(
    ("pointer", "line"),
    [
        ("/spec/replicaSpecs/0/replica", 7),
        ("/spec/replicaSpecs/1/replicas", 9),
        ("/spec/replicaSpecs/1", 8),
        ("/spec/replicaSpecs/7/replicas", 5),
        ("/metadata/name", 3),
        ("/metadata/labels/a~1b", 3),
        ("/kind", 2),
        ("", 2),
    ],
)
@pytest.mark.parametrize("before", ["", "a: 1\n---\n"])
def test_a_pointer_has_the_line_of_the_field_or_of_its_nearest_ancestor(pointer: str, line: int, before: str) -> None:
    document = documents("f", before + TEXT)[-1]
    assert document.line_of(pointer) == line + before.count("\n")


@pytest.mark.parametrize("pointer", ["/path/namespace", "/query/dryRun", "/header/Content-Type"])
def test_a_pointer_to_a_part_of_the_request_has_no_line(pointer: str) -> None:
    (document,) = documents("f", TEXT)
    assert document.line_of(pointer) is None


@pytest.mark.parametrize("metadata", ["", "metadata:\n", "metadata: {generateName: tour-}\n"])
def test_a_name_replaces_what_the_metadata_has(metadata: str) -> None:
    (document,) = documents("f", f"kind: GenericJob\n{metadata}")
    assert yaml.safe_load(with_changes(document, "other", ()).text)["metadata"] == {"name": "other"}


def test_a_changed_document_has_no_lines() -> None:
    (document,) = documents("f", TEXT)
    assert with_changes(document, "other", ()).line_of("/metadata/name") is None


@pytest.mark.parametrize(
    ("name", "settings", "path", "value"),
    [
        ("second", [], ["metadata", "name"], "second"),
        ("1", [], ["metadata", "name"], "1"),
        (None, ["spec.replicaSpecs.0.replicas=4"], ["spec", "replicaSpecs", 0, "replicas"], 4),
        (None, ["spec.replicaSpecs.1.type=a=b"], ["spec", "replicaSpecs", 1, "type"], "a=b"),
        (None, ["metadata.labels.team=vision"], ["metadata", "labels", "team"], "vision"),
        (None, ["spec.args=[a, b]"], ["spec", "args"], ["a", "b"]),
    ],
)
def test_values_are_set(name: str | None, settings: list[str], path: list[str | int], value: object) -> None:
    (document,) = documents("f", TEXT)
    content = yaml.safe_load(with_changes(document, name, settings).text)
    for part in path:
        content = content[part]
    assert content == value


@pytest.mark.parametrize(
    "value",
    [
        # PyYAML reads these in another way than the gateway, or changes how they are written.
        "22:22",
        "2026-01-31T12:00:00Z",
        "2026-02-30",
        "08",
        "0400",
        "0o17",
        "1_000",
        "1e3",
        "1.50",
        "yes",
        "y",
        # Nothing.
        "~",
        "",
        "# a comment",
        # Strings because of their quotes or tag.
        '"08"',
        "'1e3'",
        '"y"',
        "'~'",
        "''",
        "!!str 08",
        "!!str",
        '"a\\tb"',
        # Strings because of their text.
        "a:1",
        "::",
        "...1",
        "ä 🚀",
        "x" * 200 + " y",
        "a\n      b",
        "a\n\n      b",
        "|\n      a\n       b\n",
        ">\n      a\n      b\n\n       c\n",
        # Collections.
        "*labels",
        "{y: 08, 1: , a: 22:22, b: [], c: {}}",
        "[1e3, '1e3', ~]",
        # A merged mapping replaces the fields before its key, but not those after it.
        "{a: 2, <<: *labels}",
        "{<<: *labels, a: 2}",
        "{<<: [{a: 2}, *labels]}",
        '{"<<": 1}',
    ],
)
def test_a_change_keeps_all_other_values(value: str) -> None:
    text = f"kind: GenericJob\nmetadata: {{labels: &labels {{a: '1'}}}}\nspec:\n  y: 1\n  args:\n    - {value}\n"
    (document,) = documents("f", text)
    assert decoded(with_changes(document, "08", ()).text) == {
        **decoded(text),
        "metadata": {"labels": {"a": "1"}, "name": "08"},
    }


@pytest.mark.parametrize("value", ["{a: 1, a: 2}", "!!int '3'", "!other x"])
def test_a_change_keeps_what_the_gateway_refuses(value: str) -> None:
    (document,) = documents("f", f"kind: GenericJob\nspec: {value}\n")
    with pytest.raises(MalformedDocument):
        decoded(with_changes(document, "other", ()).text)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("b.w=1e1", {"x": 2, "z": {"z": 1}, "w": 10}),
        ("b.x=08", {"x": 8, "z": {"z": 1}}),
        ("b.z.y=y", {"x": 2, "z": {"z": 1, "y": True}}),
        ("b.z=", {"x": 2, "z": None}),
        ("b.c.d=!!str 08", {"x": 2, "z": {"z": 1}, "c": {"d": "08"}}),
    ],
)
def test_fields_of_a_merged_mapping_are_set_in_one_place(setting: str, value: dict[str, Any]) -> None:
    (document,) = documents("f", "a: &a {x: 1, z: {z: 1}}\nb:\n  <<: *a\n  x: 2\n  c:\n")
    old = decoded(document.text)
    assert decoded(with_changes(document, None, [setting]).text) == {"a": old["a"], "b": {"c": None} | value}


def test_a_merged_mapping_does_not_replace_a_value_that_is_set() -> None:
    (document,) = documents("f", "a: &a {x: 1}\nb: {x: 2, <<: *a}\n")
    assert decoded(with_changes(document, None, ["b.x=3"]).text)["b"] == {"x": 3}


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("spec.replicas", "it has no value"),
        ("spec.replicaSpecs.2.replicas=1", "accepted: 0 to 1"),
        ("spec.replicaSpecs.worker.replicas=1", "worker is no index"),
        ("kind.name=1", "kind is a value"),
        ("spec.replicas=[1", "is not YAML"),
    ],
)
def test_a_value_that_cannot_be_set_is_explained(setting: str, words: str) -> None:
    (document,) = documents("f", TEXT)
    with pytest.raises(ManifestError, match=words):
        with_changes(document, None, [setting])


def test_text_that_is_not_yaml_is_refused_with_its_line() -> None:
    with pytest.raises(ManifestError, match=r"^f:11: "):
        _ = Document(source="f", text="a: 1\nb: [\n", first_line=9).kind
