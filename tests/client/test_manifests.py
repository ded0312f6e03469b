"""Manifests of `-f`: documents, changes, and the lines of fields."""

import pytest
import yaml

from jobgate.cli.manifests import Document, ManifestError, changed, documents

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


@pytest.mark.parametrize("metadata", ["", "metadata:\n", "metadata: {generateName: tour-}\n"])
def test_a_name_replaces_what_the_metadata_has(metadata: str) -> None:
    (document,) = documents("f", f"kind: GenericJob\n{metadata}")
    assert yaml.safe_load(changed(document, "other", ()).text)["metadata"] == {"name": "other"}


def test_a_changed_document_has_no_lines() -> None:
    (document,) = documents("f", TEXT)
    assert changed(document, "other", ()).line_of("/metadata/name") is None


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
    content = yaml.safe_load(changed(document, name, settings).text)
    for part in path:
        content = content[part]
    assert content == value


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("spec.replicas", "it has no value"),
        ("spec.replicaSpecs.2.replicas=1", "accepted: 0 to 1"),
        ("spec.replicaSpecs.worker.replicas=1", "worker is no index"),
        ("kind.name=1", "kind is a value"),
        ("spec.replicas=[1", "is not YAML"),
        ("spec.start=2026-02-30", "is not YAML"),
    ],
)
def test_a_value_that_cannot_be_set_is_explained(setting: str, words: str) -> None:
    (document,) = documents("f", TEXT)
    with pytest.raises(ManifestError, match=words):
        changed(document, None, [setting])


def test_text_that_is_not_yaml_is_refused_with_its_line() -> None:
    with pytest.raises(ManifestError, match=r"^f:11: "):
        _ = Document(source="f", text="a: 1\nb: [\n", first_line=9).content
    with pytest.raises(ManifestError, match=r"^f:9: day is out of range for month"):
        _ = Document(source="f", text="a: 2026-02-30\n", first_line=9).content
