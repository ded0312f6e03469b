"""The directories of sets on nodes: none is inside that of another set, and nothing else is mounted."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.cache.limits import ANY_CACHE_ROOTS, CacheLimits
from app.domain.cache.manifests.stateful_set import runtime_stateful_set
from app.domain.cache.manifests.storage import is_shared
from app.domain.cache.values import SetIdentity
from app.domain.errors import InvalidManifest
from app.domain.kinds.samples.kinds import SAMPLE_SET
from app.domain.kinds.samples.specs.directories import base_of, own_directory
from app.domain.kinds.samples.specs.mount_options import cache_dirs_of
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from app.domain.plan import Manifest
from tests.domain.cache.made import IDENTITY, SITE, a_pv, a_set, set_spec
from tests.support.json_values import UNHURRIED

UIDS = st.uuids().map(str)
NAMESPACES = st.sampled_from(["team-a", "team-b"])
VICTIM = replace(IDENTITY, namespace="team-b", uid="6f1c2a52-7c8e-4a54-9a2f-3f6f0a0b9c11")
ATTACKER = replace(IDENTITY, namespace="team-a", uid="0d9c1c6e-98a1-4b21-a5c2-13f5b1d0a3e7")


def on_node(identity: SetIdentity, spec: SampleSetSpec) -> list[str]:
    """Return the directories of the node that the servers of a set mount."""
    pod = runtime_stateful_set(identity, spec, a_pv(spec, identity), SITE)["spec"]["template"]["spec"]
    return [volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume]


def accepted(identity: SetIdentity, **spec: Any) -> SampleSetSpec | None:
    limits = CacheLimits(namespace=identity.namespace, cache_roots=ANY_CACHE_ROOTS)
    try:
        return SampleSetSpec.model_validate(SAMPLE_SET.accept(a_set(**spec), limits)["spec"])
    except InvalidManifest:
        return None


def levels(*paths: str) -> Manifest:
    return {"cache": {"levels": [{"mediumType": "SSD", "path": ":".join(paths)}]}}


def mounted(*paths: str) -> Manifest:
    return {"csi": {"juiceFSMountOptions": {"cache-dir": ":".join(paths)}}}


def is_within(path: str, directory: str) -> bool:
    return f"{path}/".startswith(f"{directory}/")


BASES = st.sampled_from(["/ssd", "/ssd/a", "/data/cache", "/dev/shm"])


@UNHURRIED
@given(st.data(), UIDS, UIDS, NAMESPACES, NAMESPACES)
def test_no_directory_of_a_set_is_in_that_of_another(
    data: st.DataObject, one_uid: str, other_uid: str, one_space: str, other_space: str
) -> None:
    """The attacker knows every directory of the victim, and names one of them, or one above or below it."""
    victim = replace(IDENTITY, namespace=one_space, uid=one_uid)
    attacker = replace(IDENTITY, namespace=other_space, uid=other_uid)
    base = data.draw(BASES)
    spec = accepted(victim, **data.draw(st.sampled_from([levels, mounted]))(base))
    assert spec is not None
    targets = on_node(victim, spec)
    parts = (*targets[0].split("/")[1:], "raw", "chunks")
    chosen = "/" + "/".join(parts[: data.draw(st.integers(1, len(parts)))])
    hostile = accepted(attacker, **data.draw(st.sampled_from([levels, mounted]))(chosen))
    if hostile is None or one_uid == other_uid:
        return
    for mine in on_node(attacker, hostile):
        assert attacker.uid in mine.split("/")
        assert attacker.namespace in mine.split("/")
        assert not any(is_within(mine, target) or is_within(target, mine) for target in targets)


@pytest.mark.parametrize("place", ["{}", "{}/raw", "{}/raw/chunks", "{}/", "{}/./x"])
@pytest.mark.parametrize("form", [levels, mounted])
def test_a_directory_of_another_set_is_refused(form: type, place: str) -> None:
    spec = accepted(VICTIM, **form("/ssd/cache"))
    assert spec is not None
    (directory,) = on_node(VICTIM, spec)
    assert directory == f"/ssd/cache/team-b/{VICTIM.uid}"
    assert accepted(ATTACKER, **form(place.format(directory))) is None


def test_a_root_of_an_operator_may_have_a_uid() -> None:
    """Local volumes are often mounted at the uuid of their disk."""
    root = "/mnt/disks/1b5c3f0e-4f0a-4e0e-8d3c-9d4c1a5a7c22"
    limits = CacheLimits(namespace="team", cache_roots=(root,))
    assert SAMPLE_SET.accept(a_set(**levels(f"{root}/cache")), limits)
    with pytest.raises(InvalidManifest, match="that of a set"):
        SAMPLE_SET.accept(a_set(**levels(f"{root}/team-b/{VICTIM.uid}")), limits)


def test_a_whole_root_is_the_base_of_a_directory() -> None:
    spec = accepted(ATTACKER, **levels("/dev/shm"))
    assert spec is not None
    assert on_node(ATTACKER, spec) == [f"/dev/shm/team-a/{ATTACKER.uid}"]


def of_an_earlier_version(spec: SampleSetSpec) -> Manifest:
    """Return a volume that names its directories as the manifest does."""
    own = own_directory("", IDENTITY.namespace, IDENTITY.uid)
    volume: Manifest = json.loads(json.dumps(a_pv(spec)).replace(own, ""))
    return volume


def test_servers_do_not_mount_directories_of_an_earlier_version() -> None:
    spec = set_spec(**levels("/ssd/cache"))
    volume = of_an_earlier_version(spec)
    assert cache_dirs_of(volume) == ("/ssd/cache",)
    assert is_shared(volume, IDENTITY)
    with pytest.raises(InvalidManifest) as refused:
        runtime_stateful_set(IDENTITY, spec, volume, SITE)
    assert refused.value.code == "CacheDirShared"


def test_a_volume_is_not_shared_with_its_own_directories() -> None:
    spec = set_spec(**levels("/ssd/cache", "/nvme"))
    assert not is_shared(a_pv(spec), IDENTITY)
    assert is_shared(a_pv(spec), replace(IDENTITY, uid="other"))
    assert is_shared(a_pv(spec), replace(IDENTITY, namespace="other"))
    assert not is_shared({"metadata": {"name": "v"}, "spec": {"hostPath": {"path": "/"}}}, IDENTITY)


@UNHURRIED
@given(st.sampled_from(["/", "/ssd", "/a/b"]), NAMESPACES, UIDS)
def test_the_base_of_a_directory(base: str, namespace: str, uid: str) -> None:
    assert base_of(own_directory(base, namespace, uid), namespace, uid) == base
    assert base_of(base, namespace, uid) is None
