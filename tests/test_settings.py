"""Variables of the environment reach the code that uses them."""

from typing import Any

import pytest

from app.domain.cache.limits import CacheLimits
from app.domain.policy import Level, PodPolicy
from app.loops.controller_settings import AutoscalerSettings
from app.settings import Settings


def test_flags_of_paddles_operator_reach_its_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBGATE_PSERVER_RESTART_LIMIT", "3")
    monkeypatch.setenv("JOBGATE_AUTO_CLEAN", "true")
    monkeypatch.setenv("JOBGATE_SCHEDULER_NAMES", "kube-batchd=batch, volcano=")
    site = Settings().site()
    assert (site.pserver_restart_limit, site.auto_clean) == (3, True)
    assert site.schedulers == {"kube-batchd": "batch", "volcano": None}


def test_schedulers_place_gangs_by_the_apis_of_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"default-scheduler": "kubernetes", "volcano": "volcano", "scheduler-plugins-scheduler": "scheduler-plugins"}
    assert Settings().site().gang_schedulers == own
    monkeypatch.setenv("JOBGATE_GANG_SCHEDULERS", " batch = volcano,")
    assert Settings().site().gang_schedulers == {"batch": "volcano"}
    monkeypatch.setenv("JOBGATE_GANG_SCHEDULERS", "")
    assert Settings().site().gang_schedulers == {}
    for wrong in ("batch", "batch=tensorstack", "=volcano"):
        monkeypatch.setenv("JOBGATE_GANG_SCHEDULERS", wrong)
        with pytest.raises(ValueError, match="expected scheduler=API, with one of the APIs kubernetes, volcano"):
            Settings()


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("SCHEDULER_NAMES", "volcano:batch, kube-batch=b", "volcano:batch: expected upstream=cluster"),
        ("SCHEDULER_NAMES", "=batch", "=batch: expected upstream=cluster"),
        ("PENDING_DEADLINE", "1 day", '"1 day" is no duration; expected a number with s, m, h or d'),
        ("TRUSTED_PROXIES", "lb", "'lb' does not appear to be an IPv4 or IPv6 network; expected addresses or networks"),
        ("TRUSTED_PROXIES", "10.0.0.1/8", "10.0.0.1/8 has host bits set; expected addresses or networks"),
    ],
)
def test_a_setting_that_cannot_be_read_says_what_is_accepted(
    setting: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"JOBGATE_{setting}", value)
    with pytest.raises(ValueError, match=message):
        Settings()


def test_by_default_the_autoscaler_is_off_and_its_period_is_30_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Settings().controller().autoscaler == AutoscalerSettings(enabled=False, period=30, freeze=60, max_load=0.97)
    for name, value in {"": "on", "_PERIOD": "5", "_FREEZE": "0", "_MAX_LOAD": "0.5"}.items():
        monkeypatch.setenv(f"JOBGATE_AUTOSCALER{name}", value)
    assert Settings().controller().autoscaler == AutoscalerSettings(enabled=True, period=5, freeze=0, max_load=0.5)


def test_the_limits_of_sample_sets_apply_to_all_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().cache_limits() == CacheLimits(namespace="")
    assert Settings().cache_limits().cache_roots == ("/dev/shm/jobgate", "/var/cache/jobgate")
    monkeypatch.setenv("JOBGATE_CACHE_ROOTS", "/mnt/cache, /dev/shm")
    monkeypatch.setenv("JOBGATE_SECRET_NAMESPACES", "storage,,shared")
    limits = Settings().cache_limits()
    assert limits.cache_roots == ("/mnt/cache", "/dev/shm")
    assert limits.secret_namespaces == {"storage", "shared"}


@pytest.mark.parametrize(
    ("setting", "namespace"),
    [("NAMESPACES", "kube-system"), ("NAMESPACES", "own"), ("SECRET_NAMESPACES", "own"), ("NAMESPACES", "vault")],
)
def test_no_setting_opens_a_reserved_namespace(monkeypatch: pytest.MonkeyPatch, setting: str, namespace: str) -> None:
    monkeypatch.setenv("JOBGATE_SYSTEM_NAMESPACE", "own")
    monkeypatch.setenv("JOBGATE_RESERVED_NAMESPACES", "vault")
    monkeypatch.setenv(f"JOBGATE_{setting}", f"team,{namespace}")
    with pytest.raises(ValueError, match=f"JOBGATE_{setting} names {namespace}; the namespaces kube-\\*, own, vault"):
        Settings()


def test_reserved_namespaces_are_served_by_neither_api_nor_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBGATE_RESERVED_NAMESPACES", "vault")
    for served in (Settings().served_namespaces(), Settings().controller().served):
        assert [name for name in ("team", "vault", "jobgate-system", "kube-system") if name in served] == ["team"]


@pytest.mark.parametrize(
    ("text", "seconds"), [(None, 86_400.0), ("60", 60.0), ("1.5h", 5400.0), ("0", None), ("never", None)]
)
def test_the_default_pending_deadline_is_a_day(
    text: str | None, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        monkeypatch.setenv("JOBGATE_PENDING_DEADLINE", text)
    assert Settings().timing().pending_deadline == seconds


def test_the_default_pod_policy_is_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().policy() == PodPolicy(level=Level.BASELINE)
    monkeypatch.setenv("JOBGATE_POD_POLICY", "restricted")
    monkeypatch.setenv("JOBGATE_POD_POLICY_ALLOW", "HostNetwork, NodeName")
    monkeypatch.setenv("JOBGATE_SERVICE_ACCOUNTS", "trainer")
    monkeypatch.setenv("JOBGATE_POD_POLICY_USER_NAMESPACES", "true")
    assert Settings().policy() == PodPolicy(
        level=Level.RESTRICTED,
        allow=frozenset({"HostNetwork", "NodeName"}),
        service_accounts=frozenset({"trainer"}),
        user_namespaces=True,
    )
    monkeypatch.setenv("JOBGATE_POD_POLICY_ALLOW", "HostNet")
    with pytest.raises(ValueError, match="there is no control HostNet; the controls are Annotations, AppArmor"):
        Settings()


def test_the_limits_of_a_gateway_are_divided_among_its_workers() -> None:
    given = Settings(max_open=5000, max_open_logs=50, database_pool_size=10, max_connections=6000, dry_run_rate=20.0)
    share = given.share_of(4)
    assert (share.long_requests().total, share.long_requests().per_token, share.long_requests().logs) == (1250, 625, 13)
    assert (share.server_limits().max_connections, share.server_limits().max_connections_per_address) == (1500, 750)
    assert (share.database_pool_size, share.dry_run_rate) == (3, 5.0)
    assert share.http().max_bodies_bytes == 6 * 1024 * 1024
    assert given.share_of(1) == given


def test_a_share_is_never_too_small_to_work() -> None:
    share = Settings(max_open=1, max_open_logs=1, database_pool_size=2, max_connections=8, dry_run_rate=0).share_of(64)
    assert (share.max_open, share.max_open_logs, share.database_pool_size, share.max_connections) == (1, 1, 2, 8)
    assert share.dry_run_rate == 0
    assert share.http().max_bodies_bytes == share.max_body_bytes, "the largest body must be accepted"


@pytest.mark.parametrize(
    ("host", "only"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False)]
)
def test_which_addresses_are_loopback(host: str, *, only: bool) -> None:
    assert Settings(host=host).serves_loopback() is only


def test_the_drain_ends_before_the_process_must() -> None:
    assert Settings().drain_seconds < Settings().shutdown_timeout
    assert Settings(drain_seconds=0, shutdown_timeout=1).drain_seconds == 0
    with pytest.raises(ValueError, match=r"JOBGATE_DRAIN_SECONDS \(25 s\) must be less than JOBGATE_SHUTDOWN_TIMEOUT"):
        Settings(drain_seconds=25)


OIDC = {"oidc_issuer": "https://id.example", "oidc_client_id": "jobgate", "oidc_grants": "a=viewer:lab"}


def test_the_audience_of_tokens_is_the_client_by_default() -> None:
    assert Settings().oidc() is None
    found = Settings(**OIDC).oidc()  # type: ignore[arg-type]
    assert found is not None
    assert (found.audience, found.uses_id_tokens) == ("jobgate", True)
    assert found.claims.name == ("preferred_username", "email")
    found = Settings(**OIDC, oidc_audience="api").oidc()  # type: ignore[arg-type]
    assert found is not None
    assert (found.audience, found.uses_id_tokens) == ("api", False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"oidc_issuer": "http://id.example"}, "must be an https URL"),
        ({"oidc_issuer": "id.example"}, "must be an https URL"),
        ({"oidc_issuer": "https://[x"}, "must be an https URL"),
        ({"oidc_client_id": ""}, "also needs JOBGATE_OIDC_CLIENT_ID"),
        ({"oidc_grants": " "}, "also needs JOBGATE_OIDC_GRANTS"),
        ({"oidc_grants": "a=owner:lab"}, "there is no role owner"),
        ({"oidc_grants": "a=viewer:kube-system"}, "names kube-system; these namespaces are not served"),
        ({"namespaces": ("team",)}, "names lab; these namespaces are not served"),
        ({"open_access": True}, "exclude each other"),
    ],
)
def test_a_sign_in_that_cannot_work_is_refused_at_the_start(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**(OIDC | change))
