import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.kinds.generic_job.variables import (
    Scope,
    has_references,
    rank_dependent_bytes,
    texts_of,
    with_variables,
)

SCOPE = Scope(job="job", replicas={"worker": 4, "ps": 1}, ports={"http": 2222, "": 80})
ALONE = Scope(job="job", replicas={"worker": 4}, ports=None)


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("$(type)-$(rank)", "worker-3"),
        ("$(replicas[worker]) and $(replicas[ps])", "4 and 1"),
        ("$(service.ps[0].host):$(service.port[http])", "job-ps-0:2222"),
        ("$(service.worker[03].host)", "job-worker-3"),
        ("$$(rank)", "$$(rank)"),
        ("$$$(rank)", "$$3"),
        ("$$$$(rank)", "$$$$(rank)"),
        ("$(HOME) $(ranks) $() $(rank", "$(HOME) $(ranks) $() $(rank"),
        ("$((rank))", "$((rank))"),
        ("$( rank )", "$( rank )"),
        ("$(MY$(rank))", "$(MY3)"),
        ("${rank} $rank", "${rank} $rank"),
        ("$(service.worker.host)", "$(service.worker.host)"),
        ("$", "$"),
        ("", ""),
    ],
)
def test_substitution(text: str, becomes: str) -> None:
    assert SCOPE.substitute(text, "worker", 3) == becomes


def test_without_services_their_variables_stay_as_they_are() -> None:
    assert ALONE.substitute("$(service.port[http])", "worker", 0) == "$(service.port[http])"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("rank", None),
        ("HOME", None),
        ("replicas[ps]", None),
        ("replicas[master]", "no replica spec has this type"),
        ("service.worker[3].host", None),
        ("service.worker[4].host", "the highest rank of this type is 3"),
        ("service.master[0].host", "no replica spec has this type"),
        ("service.port[http]", None),
        ("service.port[grpc]", "no port of spec.service has this name"),
        ("service.anything", None),
    ],
)
def test_problems(name: str, problem: str | None) -> None:
    assert SCOPE.problem(name) == problem


def test_a_type_without_replicas_has_no_highest_rank() -> None:
    none = Scope(job="job", replicas={"worker": 0}, ports={})
    assert none.problem("service.worker[0].host") == "this type has no replicas"


def test_which_texts_can_contain_variables() -> None:
    texts = {"command": ["a"], "args": ["b"], "env": [{"name": "N", "value": "c"}, {"name": "M"}]}
    probe = {"livenessProbe": {"exec": {"command": ["$(rank)"]}}, "workingDir": "/$(rank)"}
    spec = {"initContainers": [texts], "containers": [{**texts, **probe}]}
    assert [text for _, text in texts_of(spec)] == ["a", "b", "c"] * 2
    rendered = with_variables(spec, SCOPE, "worker", 3)
    assert rendered["containers"][0]["workingDir"] == "/$(rank)"
    assert rendered["containers"][0]["livenessProbe"] == probe["livenessProbe"]


def test_a_null_in_a_list_of_texts_is_an_empty_text() -> None:
    spec = {"containers": [{"command": ["sh", None], "args": ["$(rank)", None]}]}
    assert with_variables(spec, SCOPE, "worker", 3) == {"containers": [{"command": ["sh", ""], "args": ["3", ""]}]}


@pytest.mark.parametrize(
    ("text", "found"),
    [("$(rank)", True), ("a $$(b", True), ('"\\$(\n', True), ("\N{DESERT}$(type)", True), ("$ (", False), ("", False)],
)
def test_whether_a_pod_spec_has_references(text: str, *, found: bool) -> None:
    spec = {"containers": [{"env": [{"name": "N", "value": text}]}]}
    assert has_references(spec) is found


@given(st.text(alphabet='$()rank"\\', max_size=12))
def test_a_pod_spec_without_references_has_no_variables(text: str) -> None:
    spec = {"containers": [{"args": [text]}]}
    assert has_references(spec) or with_variables(spec, SCOPE, "worker", 3) == spec


@pytest.mark.parametrize("junk", [None, [], {"containers": 7}, {"containers": [7, {"command": "x", "env": [1, {}]}]}])
def test_texts_of_what_is_no_pod_spec(junk: object) -> None:
    assert not list(texts_of(junk))


fragments = st.sampled_from(
    [
        "$",
        "$$",
        "$(rank)",
        "$(type)",
        "$(replicas[ps])",
        "$(service.ps[0].host)",
        "$(service.port[])",
        "(",
        ")",
        "x",
        "[0]",
    ]
)
texts = st.lists(fragments, max_size=12).map("".join)


@given(texts, st.integers(0, 3))
def test_filling_the_rank_in_last_makes_no_difference(text: str, rank: int) -> None:
    spec = {"containers": [{"command": [text], "env": [{"name": "N", "value": text}]}]}
    common = with_variables(spec, SCOPE, "worker", None)
    assert with_variables(common, SCOPE, "worker", rank) == with_variables(spec, SCOPE, "worker", rank)
    if not rank_dependent_bytes(common):
        assert with_variables(common, SCOPE, "worker", rank) == common


@given(texts)
def test_escaped_text_stays_as_it_is(text: str) -> None:
    escaped = text.replace("$", "$$")
    assert SCOPE.substitute(escaped, "worker", 0) == escaped


@given(texts)
def test_a_template_is_never_changed_in_place(text: str) -> None:
    spec = {"containers": [{"args": [text], "env": [{"name": "N", "value": text}]}]}
    with_variables(spec, SCOPE, "ps", 0)
    assert spec == {"containers": [{"args": [text], "env": [{"name": "N", "value": text}]}]}
