"""The places that sources may name: hosts, addresses and directories."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.cache.manifests.storage import check_secret
from app.domain.cache.source_limits import (
    INTERNET_ONLY,
    NETWORK_STORAGES,
    SourceLimits,
    hosts_of,
    wrong_address,
    wrong_host_entry,
)
from app.domain.errors import InvalidManifest
from app.domain.kinds.samples.specs.sources import wrong_place, wrong_source
from tests.domain.cache.made import a_secret
from tests.support.json_values import UNHURRIED

PUBLIC = [
    "s3://bucket.s3.eu-west-1.amazonaws.com/train/",
    "s3://bucket",
    "gs://imagenet/train",
    "bos://public.hkg.bcebos.com/imagenet",
    "oss://b.oss-cn-hangzhou.aliyuncs.com:443/x",
    "webdav://files.example.com/x",
    "hdfs://user@namenode.example.com:8020/data",
    "minio://93.184.216.34:9000/bucket",
    "s3://bucket.93.184.216.34:9000/x",
    "tikv://a.example.com:2379,b.example.com:2379/x",
    "s3://localhosts.example.com/x",
    "webdav://[2606:2800:220:1::1]/x",
]


@pytest.mark.parametrize("uri", PUBLIC)
def test_hosts_of_the_internet_are_allowed(uri: str) -> None:
    assert wrong_source(uri) is None
    assert wrong_place(uri, INTERNET_ONLY) is None


HOSTS_INSIDE = [
    # Metadata services.
    *("169.254.169.254", "169.254.170.2", "[fd00:ec2::254]", "metadata.google.internal", "metadata.google.internal."),
    *("100.100.100.200", "168.63.129.16", "192.0.0.192", "x.169.254.169.254", "METADATA.google.INTERNAL"),
    # The machine itself.
    *("127.0.0.1", "localhost", "b.localhost", "LOCALHOST:9000", "0.0.0.0", "[::1]", "[::]", "127.8.8.8:1"),
    *("[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]", "[fe80::1%25eth0]"),
    *("[::ffff:0:127.0.0.1]", "[::ffff:0:169.254.169.254]", "[::127.0.0.1]", "[::a9fe:a9fe]"),
    # Forms that a resolver takes for an address.
    *("127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "b.127.1", "0x7f000001"),
    # The cluster.
    *("kubernetes.default", "kubernetes.default.svc", "minio.team-b.svc", "minio.team-b.svc.cluster.local", "minio"),
    *("minio.team-b.svc.k8s.corp.example", "10.96.0.1", "172.16.0.9:9000", "192.168.1.1", "100.64.0.1", "[fd12::1]"),
    *("[fec0::1]", "[64:ff9b:1::a9fe:a9fe]", "[::ffff:0:10.0.0.7]", "[::10.0.0.7]"),
    *("bucket.minio.team-b.svc:9000", "bucket.10.0.0.7", "redis.local"),
    # Not a host.
    *("ex%61mple.com", "exa_mple..com ", "\N{FULLWIDTH DIGIT ONE}27.0.0.1", "a.com,10.0.0.1"),
    # What ends the host for juicefs.
    *("10.0.0.1?x=a.com", "10.0.0.1#a.com", "10.0.0.1\\a.com", "10.0.0.1?@a.com/"),
]


@pytest.mark.parametrize("host", HOSTS_INSIDE)
def test_hosts_inside_are_refused(host: str) -> None:
    for uri in (f"webdav://{host}/x", f"minio://{host}/b/x", f"redis:///{host}/1"):
        assert wrong_source(uri) or wrong_place(uri, INTERNET_ONLY), uri


@pytest.mark.parametrize("host", [host for host in HOSTS_INSIDE if "." in host])
@pytest.mark.parametrize("storage", ["s3", "oss", "cos", "ks3", "wasb"])
def test_they_are_refused_for_storages_with_buckets_too(storage: str, host: str) -> None:
    for uri in (f"{storage}://{host}/x", f"{storage}://bucket.{host}/x" if host[0] != "[" else f"{storage}://{host}"):
        assert wrong_source(uri) or wrong_place(uri, INTERNET_ONLY), uri


@UNHURRIED
@given(st.sampled_from(NETWORK_STORAGES), st.ip_addresses(v=4), st.sampled_from(["", "b.", "a-b."]))
def test_an_address_is_allowed_if_it_is_one_of_the_internet(
    storage: str, address: ipaddress.IPv4Address, bucket: str
) -> None:
    wrong = wrong_place(f"{storage}://{bucket}{address}:80/x", INTERNET_ONLY)
    assert (wrong is None) == (wrong_address(address, INTERNET_ONLY) is None)
    assert wrong is not None or address.is_global


CONSENT = SourceLimits(
    hosts=("minio.storage.svc", "*.corp.example", "*.corp.internal", "10.20.0.0/16", "fd12::/64", "nameservice1")
)


@pytest.mark.parametrize(
    ("uri", "allowed"),
    [
        ("minio://minio.storage.svc:9000/b/x", True),
        ("minio://MINIO.storage.svc/b/x", True),
        ("s3://bucket.minio.storage.svc:9000/x", True),
        ("minio://minio.storage.svc.cluster.local/b", False),
        ("minio://other.storage.svc/b", False),
        ("webdav://files.corp.example/x", True),
        ("webdav://corp.example/x", True),
        ("webdav://files.corp.internal/x", True),
        ("webdav://corp.internal/x", False),
        ("webdav://files.corp.example.internal/x", False),
        ("minio://10.20.3.4:9000/b", True),
        ("minio://10.21.3.4:9000/b", False),
        ("webdav://[fd12::7]:80/b", True),
        ("hdfs://nameservice1/data", True),
        ("hdfs://nameservice2/data", False),
        ("webdav://169.254.169.254/", False),
    ],
)
def test_an_operator_allows_hosts_and_networks(uri: str, *, allowed: bool) -> None:
    assert (wrong_place(uri, CONSENT) is None) == (allowed or uri.startswith("webdav://corp.example"))


@pytest.mark.parametrize(
    ("address", "named", "allowed"),
    [
        ("10.1.2.3", True, True),
        ("10.1.2.3", False, False),
        ("10.20.2.3", False, True),
        # A name cannot allow them: whoever owns the zone chooses its addresses.
        ("169.254.169.254", True, False),
        ("127.0.0.1", True, False),
        ("::1", True, False),
        ("::", True, False),
        ("::ffff:169.254.169.254", True, False),
        ("fd00:ec2::254", True, False),
        ("168.63.129.16", True, False),
        ("93.184.216.34", False, True),
    ],
)
def test_the_addresses_of_a_name(address: str, *, named: bool, allowed: bool) -> None:
    assert (wrong_address(ipaddress.ip_address(address), CONSENT, is_named=named) is None) == allowed


def test_a_public_address_inside_the_network() -> None:
    node = ipaddress.ip_address("93.184.216.34")
    assert wrong_address(node, CONSENT, inside=[node])
    assert wrong_address(node, CONSENT, inside=[node], is_named=True) is None
    assert wrong_address(node, SourceLimits(hosts=("93.184.216.34",)), inside=[node]) is None


@pytest.mark.parametrize(
    ("uri", "allowed"),
    [
        ("file:///data/", True),
        ("file:///data", True),
        ("file:///data/train/", True),
        ("file:////data//./x", True),
        ("file:///data2/", False),
        ("file:///", False),
        ("file:///cache/ssd/", False),
        ("file:///data/../cache/", False),
        ("file:///data/%2e%2e/cache/", False),
        ("file:///data/%2E./cache/", False),
        ("file://data/x", False),
        ("file://localhost/data/x", False),
    ],
)
def test_a_file_source_is_in_an_allowed_directory(uri: str, *, allowed: bool) -> None:
    assert (wrong_place(uri, SourceLimits(directories=("/data",))) is None) == allowed
    assert wrong_place(uri, INTERNET_ONLY)


@pytest.mark.parametrize(("directories", "accepted"), [(("/data", "/mnt"), "/data, /mnt"), ((), "the storages gs, s3")])
def test_a_file_source_that_is_not_allowed_is_answered_with_what_is(
    directories: tuple[str, ...], accepted: str
) -> None:
    wrong = wrong_place("file:///etc/", SourceLimits(schemes=frozenset({"s3", "gs"}), directories=directories))
    assert wrong is not None
    assert (wrong.code, wrong.accepted) == ("SourceNotAllowed", accepted)


def test_a_storage_that_is_not_allowed() -> None:
    limits = SourceLimits(schemes=frozenset({"s3"}))
    assert wrong_place("s3://b.example.com/x", limits) is None
    wrong = wrong_place("webdav://example.com/x", limits)
    assert wrong is not None
    assert (wrong.code, wrong.accepted) == ("SourceNotAllowed", "one of s3")


@pytest.mark.parametrize(
    "entry", ["minio.storage.svc", "*.corp.example", "10.0.0.1", "10.0.0.0/8", "fd00::/8", "minio"]
)
def test_entries_for_hosts(entry: str) -> None:
    assert wrong_host_entry(entry) is None


@pytest.mark.parametrize("entry", ["*", "a*", "http://minio", "minio:9000", "10.0.0.0/33", "", "a b"])
def test_wrong_entries_for_hosts(entry: str) -> None:
    assert wrong_host_entry(entry)


def test_hosts_of_a_uri_with_keys() -> None:
    assert hosts_of("s3://AK:S%2FK@b.example.com:1/x@y") == ["b.example.com"]


SECRETS = [
    ({"storage": "file", "bucket": "/var/lib/kubelet/"}, "bucket"),
    ({"storage": "file", "bucket": "file:///cache/"}, "bucket"),
    ({"storage": "File", "bucket": "/data/../etc"}, "bucket"),
    ({"metaurl": "sqlite3:///cache/x.db"}, "metaurl"),
    ({"metaurl": "badger://meta"}, "metaurl"),
    ({"bucket": "http://169.254.169.254/b"}, "bucket"),
    ({"metaurl": "redis://:pw@127.0.0.1:6379/1"}, "metaurl"),
    ({"metaurl": "mysql://user:pw@(localhost:3306)/db"}, "metaurl"),
]


@pytest.mark.parametrize(("data", "key"), SECRETS)
def test_a_volume_on_the_node_is_refused(data: dict[str, str], key: str) -> None:
    with pytest.raises(InvalidManifest, match=f"its {key} is on the node") as refused:
        check_secret(a_secret(**data), INTERNET_ONLY)
    assert "pw" not in refused.value.message
    assert refused.value.message.endswith(f"are: {', '.join(INTERNET_ONLY.directories) or 'none'}")


@pytest.mark.parametrize(
    "data",
    [
        {"metaurl": "redis://:pw@redis.team:6379/1", "bucket": "http://minio.storage.svc:9000/b"},
        {"metaurl": "redis://10.0.0.7/0", "bucket": "redis://10.0.0.7:6379/1", "storage": "redis"},
        {"storage": "file", "bucket": "/data/bucket/", "metaurl": "sqlite3:///data/meta.db"},
    ],
)
def test_a_volume_in_the_cluster_or_in_an_allowed_directory_is_accepted(data: dict[str, str]) -> None:
    check_secret(a_secret(**data), SourceLimits(directories=("/data",)))
