"""The objects of sets: golden files, and properties of all objects."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.domain.cache.job_options import sync_options
from app.domain.cache.manifests.service import runtime_service, token_secret
from app.domain.cache.manifests.stateful_set import runtime_stateful_set
from app.domain.cache.manifests.storage import persistent_volume, persistent_volume_claim
from app.domain.cache.naming import (
    directory_volume_names,
    label_of,
    node_label_of,
    runtime_name,
    service_name,
    volume_name,
)
from app.domain.cache.values import SetIdentity
from app.domain.errors import InvalidManifest, Problems
from app.domain.kinds.samples.kinds import SAMPLE_SET
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from app.domain.kubernetes import labels, names
from app.domain.plan import Manifest
from app.domain.pod_template import validate_pod_template
from tests.domain.cache.made import IDENTITY, LIMITS, SITE, SOURCES, a_pv, a_runtime, a_secret, a_set, set_spec
from tests.support.json_values import UNHURRIED
from tests.support.plugins.golden import Golden

DATA = Path(__file__).parents[2] / "data" / "sample_set"
CASES = sorted(path.name for path in DATA.iterdir())
NAMESPACES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
SETS = st.from_regex(r"[a-z]([-a-z0-9]{0,42}[a-z0-9])?", fullmatch=True)
DIRECTORIES = st.lists(st.from_regex(r"(/[a-zA-Z0-9_.-]{1,40}){1,4}", fullmatch=True), unique=True, max_size=5)


def objects_of(identity: SetIdentity, spec: SampleSetSpec) -> list[Manifest]:
    pv = persistent_volume(identity, spec, a_secret(), SOURCES)
    return [
        pv,
        persistent_volume_claim(identity),
        runtime_service(identity),
        runtime_stateful_set(identity, spec, pv, SITE),
    ]


@pytest.mark.parametrize("case", CASES)
def test_a_sets_objects(case: str, golden: Golden) -> None:
    posted = yaml.safe_load((DATA / case / "manifest.yaml").read_text())
    accepted = SAMPLE_SET.accept(posted, LIMITS)
    identity = replace(IDENTITY, name=posted["metadata"]["name"])
    golden(DATA / case / "accepted.yaml", accepted)
    golden(DATA / case / "objects.yaml", objects_of(identity, SampleSetSpec.model_validate(accepted["spec"])))


def test_names_and_label() -> None:
    assert label_of("s") == "paddlepaddle.org/juicefs-s"
    assert runtime_name("s") == "s-runtime"
    assert service_name("s") == "s-runtime-service"


@pytest.mark.parametrize(
    ("namespace", "name", "label"),
    [
        ("team", "s", "paddlepaddle.org/juicefs-team.s"),
        ("a", "b-c", "paddlepaddle.org/juicefs-a.b-c"),
        ("a-b", "c", "paddlepaddle.org/juicefs-a-b.c"),
        ("n" * 63, "s" * 44, f"paddlepaddle.org/juicefs-{'n' * 38}-b5defef4c4f63313"),
        ("n" * 63, "t" * 44, f"paddlepaddle.org/juicefs-{'n' * 38}-aa2843e112b17cf8"),
    ],
)
def test_the_label_of_nodes_has_the_namespace(namespace: str, name: str, label: str) -> None:
    """Otherwise sets of the same name in two namespaces would remove each other's labels."""
    assert node_label_of(namespace, name) == label
    assert names.label_key(label) is None


def test_the_token_has_a_secret_that_the_servers_mount() -> None:
    secret = token_secret(IDENTITY, "t0k3n")
    assert secret["stringData"] == {"token": "t0k3n"}
    assert secret["immutable"]
    pod = a_runtime(set_spec())["spec"]["template"]["spec"]
    (volume,) = [volume for volume in pod["volumes"] if "secret" in volume]
    assert volume["secret"]["secretName"] == secret["metadata"]["name"] == "imagenet-runtime-token"
    (mount,) = [mount for mount in pod["containers"][0]["volumeMounts"] if mount["name"] == volume["name"]]
    assert f"--token-file={mount['mountPath']}/token" in pod["containers"][0]["command"]


@pytest.mark.parametrize("key", ["name", "storage", "metaurl", "bucket"])
def test_a_secret_that_lacks_a_key_is_refused(key: str) -> None:
    data = a_secret().data
    for lacking in ({**data, key: ""}, {name: value for name, value in data.items() if name != key}):
        with pytest.raises(InvalidManifest) as refused:
            persistent_volume(IDENTITY, set_spec(), replace(a_secret(), data=lacking), SOURCES)
        assert refused.value.code == "SecretNotValid"
        assert refused.value.message == f"secret storage is not valid: it lacks {key}"


@pytest.mark.parametrize(("has", "lacks"), [("access-key", "secret-key"), ("secret-key", "access-key")])
def test_a_key_without_the_other_is_refused(has: str, lacks: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        persistent_volume(IDENTITY, set_spec(), a_secret(**{has: "hush"}), SOURCES)
    assert refused.value.code == "IncompleteKeys"
    assert refused.value.message == f"secret storage is not valid: it has the key {has} without {lacks}"


def test_without_a_runtime_image_the_stateful_set_is_refused() -> None:
    with pytest.raises(InvalidManifest) as refused:
        runtime_stateful_set(IDENTITY, set_spec(), a_pv(set_spec()), replace(SITE, runtime_image=""))
    assert refused.value.code == "RuntimeImageMissing"
    assert refused.value.message == "no image for the runtime servers is set: JOBGATE_RUNTIME_IMAGE of the controller"


def test_the_installation_configures_the_mount_paths() -> None:
    site = replace(SITE, cache_mount_path="/c", data_mount_path="/d")
    made = runtime_stateful_set(IDENTITY, set_spec(), a_pv(set_spec()), site)
    mounts = made["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    assert [mount["mountPath"] for mount in mounts[:2]] == ["/c/dev-shm-jobgate", "/d/imagenet"]


def test_a_volumes_secret_may_be_of_another_namespace() -> None:
    made = persistent_volume(IDENTITY, set_spec(), replace(a_secret("lent"), namespace="shared"), SOURCES)
    assert made["spec"]["csi"]["nodePublishSecretRef"] == {"name": "lent", "namespace": "shared"}


def test_a_cache_directory_takes_no_name_of_the_pods_other_volumes() -> None:
    spec = set_spec(cache={"levels": [{"mediumType": "SSD", "path": "/sample/set:/runtime/token"}]})
    volumes = [volume["name"] for volume in a_runtime(spec)["spec"]["template"]["spec"]["volumes"]]
    assert len(set(volumes)) == len(volumes) == 4


def test_cache_directories_come_from_the_volume_not_from_a_later_edit() -> None:
    made_with = set_spec(cache={"levels": [{"mediumType": "SSD", "path": "/ssd"}]})
    edited = set_spec(cache={"levels": [{"mediumType": "SSD", "path": "/other"}]}, partitions=7)
    made = runtime_stateful_set(IDENTITY, edited, a_pv(made_with), SITE)
    assert made["spec"]["template"]["spec"]["volumes"][0]["hostPath"]["path"] == "/ssd/team/4b9ee1f2"
    assert made["spec"]["replicas"] == 7


def test_no_command_uses_a_shell() -> None:
    spec = set_spec(cache={"levels": [{"mediumType": "SSD", "path": "/a/$(reboot);x"}]})
    container = a_runtime(spec)["spec"]["template"]["spec"]["containers"][0]
    for command in (container["command"], container["lifecycle"]["preStop"]["exec"]["command"]):
        assert command[:2] == ["jobgate", "cache-runtime"]
        assert not any("reboot" in argument for argument in command)


@pytest.mark.parametrize(
    ("directories", "expected"),
    [
        (["/data/cache"], ["data-cache"]),
        (["/a/b", "/a-b"], ["cache-", "cache-"]),
        (["/Data"], ["cache-"]),
        (["/a/.b"], ["cache-"]),
        (["/" + "x" * 64], ["cache-"]),
        (["/sample/set"], ["cache-"]),
        (["/runtime/token", "/c"], ["cache-", "c"]),
    ],
)
def test_pod_volumes_have_upstreams_names_if_valid_and_unique(directories: list[str], expected: list[str]) -> None:
    made = directory_volume_names(directories, reserved=("sample-set", "runtime-token"))
    assert len(set(made)) == len(made)
    assert all(
        name == want or (want == "cache-" and name.startswith(want)) for name, want in zip(made, expected, strict=True)
    )


@UNHURRIED
@given(DIRECTORIES)
def test_volume_names_are_valid_and_distinct(directories: list[str]) -> None:
    made = directory_volume_names(directories)
    assert len(set(made)) == len(directories)
    assert [name for name in made if names.dns_label(name)] == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "set"), ("b", "set")),
        (("a-b", "c"), ("a", "b-c")),
        (("n" * 40, "s" * 30), ("n" * 40, "s" * 31)),
        (("n" * 63, "a" * 44), ("n" * 63, "a" * 43 + "b")),
    ],
)
def test_volumes_of_different_sets_have_different_names(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert volume_name(*one) != volume_name(*other)


@UNHURRIED
@given(NAMESPACES, SETS, NAMESPACES, SETS)
def test_volume_names_are_unique_for_namespace_and_set(one_ns: str, one: str, other_ns: str, other: str) -> None:
    left, right = volume_name(one_ns, one), volume_name(other_ns, other)
    assert (left == right) == ((one_ns, one) == (other_ns, other))
    assert names.dns_subdomain(left) is None
    assert names.label_value(left) is None


@UNHURRIED
@given(NAMESPACES, SETS, st.integers(1, 1000))
def test_any_sets_objects_are_valid(namespace: str, name: str, partitions: int) -> None:
    identity = replace(IDENTITY, namespace=namespace, name=name)
    spec = SampleSetSpec.model_validate(SAMPLE_SET.accept(a_set(name, partitions=partitions), LIMITS)["spec"])
    made = objects_of(identity, spec)
    assert made == objects_of(identity, spec)
    pv, claim, service, runtime = made
    assert names.dns_1035_label(service["metadata"]["name"]) is None
    assert len(runtime["metadata"]["name"]) <= names.STATEFUL_SET_NAME_MAX
    assert claim["spec"]["volumeName"] == pv["metadata"]["name"] == pv["spec"]["csi"]["volumeHandle"]
    assert pv["spec"]["claimRef"]["namespace"] == namespace
    problems = Problems()
    validate_pod_template({"spec": runtime["spec"]["template"]["spec"]}, "", problems)
    assert problems.errors == ()
    for each in made:
        check_metadata(each, identity)


def check_metadata(manifest: Manifest, identity: SetIdentity) -> None:
    metadata = manifest["metadata"]
    assert metadata.keys() <= {"name", "namespace", "labels", "annotations"}, "nobody owns it, and nobody holds it up"
    assert metadata["annotations"] == {"CreatedBy": "paddle-operator"}
    assert metadata["labels"][label_of(identity.name)] == "true"
    assert metadata["labels"][labels.INSTALLATION] == identity.installation
    assert metadata["labels"][labels.SAMPLE_SET_UID] == identity.uid
    assert metadata["labels"][labels.SAMPLE_SET_NAMESPACE] == identity.namespace
    for key, value in metadata["labels"].items():
        assert names.label_key(key) is None
        assert names.label_value(value) is None


SECRETS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=12, max_size=20).map("hush-{}".format)


@UNHURRIED
@given(SECRETS, SECRETS)
def test_credentials_are_in_the_option_file_only(access: str, hidden: str) -> None:
    keys = {"access-key": access, "secret-key": hidden, "metaurl": f"redis://:{hidden}@meta/1"}
    secret = a_secret(**keys)
    spec = set_spec()
    options = sync_options(IDENTITY, spec, None, secret, SITE)
    seen: list[Any] = [
        persistent_volume(IDENTITY, spec, secret, SOURCES),
        persistent_volume_claim(IDENTITY),
        runtime_service(IDENTITY),
        token_secret(IDENTITY, "t0k3n"),
        runtime_stateful_set(IDENTITY, spec, persistent_volume(IDENTITY, spec, secret, SOURCES), SITE),
        options.values,
        repr(options),
        str(options),
        repr(options.keys),
        str(options.keys),
        f"{options.keys}",
        repr(secret),
        str(secret),
        options.digest(b"key"),
    ]
    for lacking in ("access-key", "secret-key", "bucket"):
        with pytest.raises(InvalidManifest) as refused:
            persistent_volume(IDENTITY, spec, a_secret(**{**keys, lacking: ""}), SOURCES)
        seen += [str(refused.value), repr(refused.value), repr(refused.value.errors)]
    text = json.dumps(seen)
    assert access not in text
    assert hidden not in text
    assert options.option_file()["source"] == f"s3://{access}:{hidden}@bucket.example.com/train/"
