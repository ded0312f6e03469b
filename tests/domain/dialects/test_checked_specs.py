"""A spec that an earlier job had is not checked again, and the answer is the same as if it were."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.dialects.base import Given, Limits
from app.domain.dialects.checked_specs import CheckedSpecs, spec_digest
from app.domain.dialects.generic_job import GenericJobDialect, validation
from app.domain.errors import FieldError, InvalidManifest
from app.domain.plan import Manifest
from tests.domain.dialects.test_generic_job_changes import mutate
from tests.domain.dialects.test_generic_job_properties import POINTERS, values
from tests.domain.dialects.test_generic_job_validation import PORTS, a_manifest, command, replica
from tests.support.json_values import UNHURRIED
from tests.support.plans import GIVEN

DIALECT = GenericJobDialect()
LIMITS = Limits(max_replicas=50)
SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "Services": {"service": {"ports": PORTS}},
    "long type": {"replicaSpecs": replica(type="w" * 40)},
    "variable": {"replicaSpecs": command("$(replicas[worker])")},
    "host": {"replicaSpecs": command("$(service.worker[0].host)"), "service": {"ports": PORTS}},
    "older spelling": {"successRules": {"rules": [{"replicas": {"worker": ["0"]}}]}},
    "wrong": {"successRules": [{"worker": [2]}]},
}
NAMES = ["b", "b.c", "0b", "b" * 20, "b" * 63, "B", "", None, 1]


def given_with(checked: CheckedSpecs | None) -> Given:
    return replace(GIVEN, checked=checked)


def named(name: object, **spec: Any) -> Manifest:
    return {**a_manifest(**spec), "metadata": {"name": name}}


def answer(manifest: Manifest, checked: CheckedSpecs | None = None) -> tuple[bytes, Any] | tuple[FieldError, ...]:
    try:
        accepted = DIALECT.accept(manifest, LIMITS, given_with(checked))
    except InvalidManifest as refused:
        return refused.errors
    # The text has the order of the fields and the types of the numbers, too.
    return msgspec.json.encode(accepted.manifest), accepted.spec


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_spec_of_an_earlier_job_gets_the_same_answer(spec: dict[str, Any], name: object) -> None:
    checked = CheckedSpecs()
    answer(named("a", **spec), checked)
    assert answer(named(name, **spec), checked) == answer(named(name, **spec))


@UNHURRIED
@given(pointer=st.sampled_from(POINTERS), value=values)
def test_a_changed_manifest_gets_the_same_answer(pointer: str, value: Any) -> None:
    checked = CheckedSpecs()
    answer(a_manifest(), checked)
    changed = mutate(a_manifest(), pointer, value)
    for _ in range(2):
        assert answer(changed, checked) == answer(changed)


@pytest.fixture
def count_checks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return a function that counts the checks of GenericJobs so far."""
    checks: list[str] = []
    check = validation.validate

    def counted(spec: Any, job: str, *more: Any) -> None:
        checks.append(job)
        check(spec, job, *more)

    monkeypatch.setattr("app.domain.dialects.generic_job.validate", counted)
    return lambda: len(checks)


@pytest.mark.parametrize(
    ("spec", "checks"), [("plain", 1), ("Services", 1), ("older spelling", 1), ("variable", 3), ("host", 3)]
)
def test_a_spec_without_variables_is_checked_once(count_checks: Callable[[], int], spec: str, checks: int) -> None:
    checked = CheckedSpecs()
    for name in ("a", "b", "c"):
        answer(named(name, **SPECS[spec]), checked)
    assert count_checks() == checks


def test_manifests_with_one_spec_share_no_part_that_is_stored() -> None:
    checked = CheckedSpecs()
    first, second = (DIALECT.accept(named(name), LIMITS, given_with(checked)).manifest for name in "ab")
    first["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["command"].append("changed")
    assert answer(named("c"), checked) == answer(named("c"))
    assert msgspec.json.encode(second) == answer(named("b"))[0]


def test_the_oldest_specs_are_forgotten_beyond_the_limit() -> None:
    checked = CheckedSpecs(max_bytes=100_000)
    digests = [spec_digest("GenericJob", number) for number in range(100)]
    for place, digest in enumerate(digests):
        checked.put(digest, place, {})
    assert checked.get(digests[0]) is None
    assert checked.get(digests[-1]) == (99, b"{}")


def test_a_large_spec_is_not_kept() -> None:
    checked = CheckedSpecs(max_bytes=100_000)
    small, large = (spec_digest("GenericJob", size) for size in (1, 2))
    checked.put(small, "small", {"command": "x" * 10_000})
    checked.put(large, "large", {"command": "x" * 90_000})
    assert checked.get(small) is not None
    assert checked.get(large) is None


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), ({"a": 1, "b": 2}, {"b": 2, "a": 1})])
def test_specs_that_a_check_may_distinguish_have_different_digests(one: Any, other: Any) -> None:
    assert spec_digest("GenericJob", one) != spec_digest("GenericJob", other)
    assert spec_digest("GenericJob", one) != spec_digest("MXJob", one)


def test_a_value_that_cannot_be_encoded_has_no_digest() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert spec_digest("GenericJob", deep) is None
    assert spec_digest("GenericJob", "\ud800") is None
