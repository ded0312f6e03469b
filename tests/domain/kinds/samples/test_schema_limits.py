"""Every limit in the JSON schemas of both kinds is enforced. The schemas have the limits of upstream's CRDs."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from app.domain.errors import InvalidManifest
from app.domain.kinds.sample_kind import SampleKind
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.plan import Manifest
from tests.domain.cache.made import LIMITS, a_job, a_set


class Limit(NamedTuple):
    """A limit of a field. A list on the way has one element."""

    path: tuple[str, ...]
    keyword: str
    value: Any


# From the CRDs of PaddleCloud b4f3a91: every enum, minimum, minLength and minItems.
UPSTREAM: Mapping[SampleKind, set[str]] = {
    SAMPLE_SET: {
        "partitions minimum 1",
        "source.uri minLength 10",
        "csi.driver enum juicefs",
        "cache.levels minItems 1",
        "cache.levels.mediumType enum MEM,SSD,HDD",
        "cache.levels.path minLength 1",
    },
    SAMPLE_JOB: {
        "type enum sync,warmup,rmr,clear",
        "warmupOptions.paths minItems 1",
        "warmupOptions.partitions minimum 1",
        "warmupOptions.strategyName enum random,sequence",
        "rmrOptions.paths minItems 1",
        "clearOptions.paths minItems 1",
    },
}


def limits_of(kind: SampleKind) -> list[Limit]:
    schema = kind.json_schema()

    def walk(at: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Limit]:
        if (reference := at.get("$ref")) is not None:
            yield from walk(schema["$defs"][reference.rpartition("/")[2]], path)
        for keyword in ("enum", "minimum", "maximum", "minLength", "minItems"):
            if keyword in at:
                yield Limit(path, keyword, at[keyword])
        for part in (*at.get("anyOf", ()), *([at["items"]] if "items" in at else [])):
            yield from walk(part, path)
        for name, part in at.get("properties", {}).items():
            yield from walk(part, (*path, name))

    return list(walk(schema["properties"]["spec"], ()))


LIMITS_OF = [(kind, limit) for kind in UPSTREAM for limit in limits_of(kind)]


def text(limit: Limit) -> str:
    value = ",".join(limit.value) if limit.keyword == "enum" else limit.value
    return f"{'.'.join(limit.path)} {limit.keyword} {value}"


@pytest.mark.parametrize("kind", UPSTREAM)
def test_the_schema_has_upstreams_limits(kind: SampleKind) -> None:
    assert UPSTREAM[kind] <= {text(limit) for limit in limits_of(kind)}


def beyond(limit: Limit) -> list[Any]:
    """Return values that violate the limit, and no other one of the same keyword."""
    return {
        "enum": ["", "else"],
        "minimum": [limit.value - 1] if limit.keyword == "minimum" else [],
        "maximum": [limit.value + 1] if limit.keyword == "maximum" else [],
        "minLength": ["", "x" * (limit.value - 1)] if limit.keyword == "minLength" else [],
        "minItems": [[]],
    }[limit.keyword]


def placed(manifest: Manifest, limit: Limit, value: Any) -> Manifest:
    *way, last = limit.path
    placed: Any = {last: value}
    for step in reversed(way):
        placed = {step: [placed] if step == "levels" else placed}
    return {**manifest, "spec": manifest["spec"] | placed}


@pytest.mark.parametrize(("kind", "limit"), LIMITS_OF, ids=lambda one: text(one) if isinstance(one, Limit) else None)
def test_a_value_beyond_a_limit_is_refused(kind: SampleKind, limit: Limit) -> None:
    manifest = a_set() if kind is SAMPLE_SET else a_job("sync" if limit.path[0] == "syncOptions" else "warmup")
    pointer = "/".join(["/spec", *limit.path]).replace("levels/", "levels/0/")
    for value in beyond(limit):
        with pytest.raises(InvalidManifest) as refused:
            kind.accept(placed(manifest, limit, value), LIMITS)
        assert pointer in {error.pointer for error in refused.value.errors}
