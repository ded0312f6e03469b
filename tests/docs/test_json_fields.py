"""The JSON fields that the documentation names exist in the OpenAPI document, or in the sources of the page."""

import json
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from app.domain.cache.reconcile.cache_status import CacheStatus
from app.domain.kinds import registry
from cacheserver import options
from tests.support.documents.json_fields import Fields, named_on, of_example, of_json_schema, of_kubernetes

ROOT: Final = Path(__file__).parents[2]
KINDS: Final = sorted((ROOT / "docs" / "kinds").glob("*.md"))
PAGES: Final = sorted(
    [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "sdks").glob("*.md"), *KINDS]
)
# Pages that name fields of other documents than requests and answers, by the source of those fields.
SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "docs/access.md": ("Kubernetes",),
    "docs/autoscaling.md": ("Kubernetes",),
    "docs/cache-runtime.md": ("runtime server",),
    "docs/concepts.md": ("manifests",),
    "docs/elasticity.md": ("Kubernetes",),
    "docs/embedded-cluster.md": ("Kubernetes", "node scripts"),
    "docs/gangs.md": ("Kubernetes", "manifests"),
    "docs/helm.md": ("values of the chart",),
    "docs/observability.md": ("log events", "log lines and spans"),
    "docs/operations.md": ("Kubernetes", "log events"),
    "docs/migration.md": ("Kubernetes",),
    "docs/pod-policy.md": ("Kubernetes",),
    "docs/runbooks.md": ("log events",),
    "docs/settings.md": ("Kubernetes", "log events"),
    "docs/status.md": ("native status",),
    **{str(page.relative_to(ROOT)): ("Kubernetes",) for page in KINDS},
}
SCHEMAS: Final[dict[str, tuple[str, Callable[[Any], Fields]]]] = {
    "Kubernetes": ("devcluster/formats/schema.json", of_kubernetes),
    "values of the chart": ("deploy/helm/jobgate/values.schema.json", of_json_schema),
}
# The modules that define the fields of log lines, and the names and attributes of spans.
TELEMETRY: Final = (
    "app/api/layers/request_log.py",
    "app/db/jobs/group_commit.py",
    "app/k8s/session/spans.py",
    "app/loops/reconcile_span.py",
    "app/k8s/session/transport.py",
    "app/loops/jobs/decided_jobs.py",
    "app/telemetry/log_fields.py",
    "app/telemetry/logs.py",
    "app/telemetry/otlp.py",
    "app/telemetry/tracing.py",
)
_OF_KUBERNETES: Final = "a field of a Kubernetes object; fields of the API begin with the same name"
_EARLIER: Final = "a field of an earlier version"
_RULE: Final = "the name of a rule of the plan, which plans show as a value"
# Fields of documents without a schema, and words that look like fields, each with the reason.
EXCEPTIONS: Final[dict[tuple[str, str], str]] = {
    **{
        ("docs/queues.md", name): "a field of Kueue, or of its configuration"
        for name in (
            "coveredResources",
            "manageJobsWithoutQueueName",
            "maximumExecutionTimeSeconds",
            "minCount",
            "reclaimablePods",
            "spec.active",
            "spec.queueName",
            "waitForPodsReady",
            "waitForPodsReady.recoveryTimeout",
        )
    },
    ("docs/queues.md", "priorityClassName"): _OF_KUBERNETES,
    ("docs/queues.md", "resourceClaimName"): _OF_KUBERNETES,
    ("docs/queues.md", "resourceClaims"): _OF_KUBERNETES,
    **{(page, "queues.enabled"): "a value of the chart" for page in ("docs/migration.md", "docs/queues.md")},
    ("docs/exports.md", "writtenAt"): "a field of an export, which has no schema",
    ("docs/settings.md", "realm_access.roles"): "a claim of Keycloak",
    ("docs/api.md", "event"): "a field of the lines of a stream, which have no schema",
    ("docs/api.md", "line"): "a field of the lines of a merged log, which have no schema",
    ("docs/api.md", "missing"): "a field of the lines of a log, which have no schema",
    ("docs/api.md", "restartPolicyRules"): _OF_KUBERNETES,
    ("docs/cli.md", "pyhton3"): "the typing error of the session",
    **{
        ("docs/client.md", name): "a name of the Python library"
        for name in (
            "client.jobs",
            "client.queues",
            "client.sample_jobs",
            "client.sample_sets",
            "client.usage",
            "jobgate.client",
        )
    },
    ("docs/elasticity.md", "hosts"): "a field of the file hosts.json",
    ("docs/embedded-cluster.md", "csi.juicefs.com"): "the name of a CSI driver",
    ("docs/embedded-cluster.md", "spec.mountOptions"): _OF_KUBERNETES,
    ("docs/embedded-cluster.md", "status.podIP"): _OF_KUBERNETES,
    **{("docs/gangs.md", field): "a field of a PodGroup" for field in ("minMember", "schedulingPolicy.gang.minCount")},
    ("docs/gangs.md", "spec.schedulingGroup.podGroupName"): _OF_KUBERNETES,
    ("docs/glossary.md", "metadata.ownerReferences"): _OF_KUBERNETES,
    ("docs/install.md", "org.opencontainers.image.version"): "a label of a container image",
    ("docs/migration.md", "nativeStatus.tasks.replicas"): "a field of a native status, which OpenAPI leaves open",
    ("docs/migration.md", "additionalProperties"): "a word of JSON Schema",
    **{
        (page, "replicasOmitted"): "a field of a native status, which OpenAPI leaves open"
        for page in ("docs/kinds/generic-job.md", "docs/migration.md")
    },
    ("docs/kinds/generic-job.md", "replicasSpec"): "an old spelling of replicaSpecs, which is accepted and not stored",
    ("docs/kinds/mx-job.md", "mxnet.mlkube.io"): "an API group",
    ("docs/kinds/sample-set.md", "csi.juicefs.com"): "the name of a CSI driver",
    ("docs/kinds/sample-set.md", "minItems"): "a word of JSON Schema",
    ("docs/kinds/sample-set.md", "minLength"): "a word of JSON Schema",
    ("docs/kinds/training-job.md", "trainer.hosts"): "the name of a file of pods",
    ("docs/kinds/training-job.md", "pserverRestartLimit"): _RULE,
    ("docs/kinds/training-job.md", "trainersDone"): _RULE,
    ("docs/kinds/training-job.md", "trainersFailed"): _RULE,
    **{
        ("docs/migration.md", name): _EARLIER
        for name in ("cacheObservedAt", "deletion.by", "deletion.requestedAt", "deletion.stage", "sampleJob")
    },
    ("docs/observability.md", "lease.acquired"): "the name of a log line",
    ("docs/observability.md", "server.address"): "an attribute of a span",
    ("docs/observability.md", "server.port"): "an attribute of a span",
    ("docs/settings.md", "minio.storage.svc"): "the name of a host",
    ("docs/operations.md", "database.stuck_sessions_ended"): "the name of a log line",
    ("docs/operations.md", "controller.lease_given_away"): "the name of a log line",
    ("docs/runbooks.md", "database.stuck_sessions_ended"): "the name of a log line",
    ("docs/runbooks.md", "feed.database_unavailable"): "the name of a log line",
    ("docs/sdks/python.md", "event"): "a field of a server-sent event",
    ("docs/sdks/typescript.md", "exactOptionalPropertyTypes"): "an option of the TypeScript compiler",
    ("docs/sdks/python.md", "job"): "the type of a server-sent event",
    ("docs/status.md", "metadata.ownerReferences"): _OF_KUBERNETES,
    ("docs/status.md", "restartPolicyRules"): _OF_KUBERNETES,
}


def load(path: str) -> Any:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


@cache
def of_api() -> Fields:
    return of_json_schema(load("openapi/openapi.json"))


@cache
def words_of_api() -> Fields:
    """The names of query parameters and the values of enumerations, which look like fields."""
    document = load("openapi/openapi.json")
    operations = [one for path in document["paths"].values() for one in path.values() if isinstance(one, dict)]
    words = {parameter["name"] for one in operations for parameter in one.get("parameters", ())}
    words.update(*(schema.get("enum", ()) for schema in document["components"]["schemas"].values()))
    return Fields(names=words)


def of_log_events() -> Fields:
    fields = Fields()
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "app").rglob("*.py"))
    for group, event in re.findall(r'"([a-z_]+)\.([a-z_]+)"', source):
        fields.add(group, {event})
    return fields


def of_telemetry() -> Fields:
    """The keyword arguments of log calls, and the names and attributes of spans with their parts."""
    fields = Fields()
    source = "".join((ROOT / path).read_text(encoding="utf-8") for path in TELEMETRY)
    fields.names.update(re.findall(r"\b([a-z_]+)=", source))
    for found in re.findall(r'"([a-z]\w*(?:\.\w+)*)"', source):
        parts = found.split(".")
        fields.names.add(parts[0])
        for parent, child in pairwise(parts):
            fields.add(parent, {child})
    return fields


@cache
def of_source(name: str) -> Fields:
    fields = Fields()
    match name:
        case "Kubernetes" | "values of the chart":
            document, fields_of = SCHEMAS[name]
            fields |= fields_of(load(document))
        case "manifests":
            for kind in registry.JOB_KINDS.values():
                fields |= of_json_schema(kind.json_schema())
        case "native status":
            for path in (ROOT / "tests" / "data").glob("*_native/*.json"):
                example = json.loads(path.read_text(encoding="utf-8"))
                statuses = [step["status"] for step in example] if isinstance(example, list) else [example]
                fields |= of_example([{"nativeStatus": status} for status in statuses])
            of_cache = CacheStatus(**dict.fromkeys(CacheStatus.__dataclass_fields__, "x")).native()
            fields |= of_example({"nativeStatus": {"cacheStatus": of_cache}})
        case "runtime server":
            fields |= of_json_schema(msgspec.json.schema(options.CacheInfo))
        case "node scripts":
            source = (ROOT / "devcluster" / "testing" / "script.py").read_text(encoding="utf-8")
            fields.names.update(re.findall(r'"(\w+)"', source))
        case "log events":
            fields |= of_log_events()
        case "log lines and spans":
            fields |= of_telemetry()
        case _:
            raise AssertionError(f"there is no source {name}")
    return fields


def unknown_on(page: str, api: Fields, *sources: Fields) -> set[str]:
    """The fields that a page names and no document has.

    A path that begins with a field of the API must exist in the API, even if another source has it.
    """
    return {
        ".".join(path)
        for path in named_on(page)
        if not api.has(path) and (path[0] in api.names or not any(source.has(path) for source in sources))
    }


def unknown_of(page: Path) -> set[str]:
    sources = map(of_source, SOURCES.get(str(page.relative_to(ROOT)), ()))
    api = of_api()
    if page in KINDS:
        # OpenAPI does not describe the manifest and the native status of each kind.
        api = api | of_source("manifests") | of_source("native status")
    return unknown_on(page.read_text(encoding="utf-8"), api, words_of_api(), *sources)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_fields_that_a_page_names_exist(page: Path) -> None:
    name = str(page.relative_to(ROOT))
    excepted = {field for where, field in EXCEPTIONS if where == name}
    unknown = unknown_of(page)
    assert sorted(unknown - excepted) == []
    assert sorted(excepted - unknown) == [], "exceptions that are not needed any more"


def test_an_exception_has_a_page() -> None:
    assert {where for where, _ in EXCEPTIONS} | SOURCES.keys() <= {str(page.relative_to(ROOT)) for page in PAGES}


MADE_UP: Final = """
A job's `madeUpWord`, `status.madeUp` and `errors[].madeUp: 1`, in `{"madeUpKey": 1}`; not `status.phase`,
`pendingReasons[].code`, `metadata.labels.anything`, `plain`, `app/made.py`, `madeUp.json`.

| field | meaning |
|---|---|
| `madeup_column` | `plain` |
| `phase` | |

```json
{"status": {"madeUpInside": "…"}}
{"madeUpLine": [{"uid": 1}]}
```

```sh
curl -d '{"madeUpBody": 1}' | jq -r '.status.madeUpPath, (.madeUpList[0].name | select(. == "a.b"))'
```
"""


def test_a_field_that_does_not_exist_would_be_found() -> None:
    assert unknown_on(MADE_UP, of_api()) == {
        "madeUpWord",
        "status.madeUp",
        "errors.madeUp",
        "madeUpKey",
        "madeup_column",
        "status.madeUpInside",
        "madeUpLine",
        "madeUpLine.uid",
        "madeUpBody",
        "status.madeUpPath",
        "madeUpList.name",
    }


def test_another_source_does_not_hide_a_field_that_the_api_lacks() -> None:
    page = "`status.hostIP` `hostIP` `spec.hostUsers`"
    api = of_example({"status": {"phase": ""}})
    assert unknown_on(page, api, of_source("Kubernetes")) == {"status.hostIP"}


def test_every_source_has_fields() -> None:
    for name in {source for sources in SOURCES.values() for source in sources}:
        assert len(of_source(name).names) > 5, name
    assert len(of_api().names) > 100
    assert sum(len(list(named_on(page.read_text(encoding="utf-8")))) for page in PAGES) > 100
