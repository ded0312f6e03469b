"""The messages are those of a Kubernetes 1.36 control plane, word for word."""

import pytest

from app.domain.status.refusal_messages import refusal_message
from app.domain.status.refusals import judge

RBAC = 'pods is forbidden: User "gateway" cannot create resource "pods" in API group "" in the namespace "default"'
QUOTA = 'pods "a" is forbidden: exceeded quota: rq, requested: pods=1, used: pods=0, limited: pods=0'
ACCOUNT = 'pods "a" is forbidden: error looking up service account default/nope: serviceaccount "nope" not found'
TERMINATING = 'pods "a" is forbidden: unable to create new content in namespace term because it is being terminated'
POD_SECURITY = 'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'
LIMIT_RANGE = 'pods "lr" is forbidden: maximum cpu usage per Container is 1, but limit is 2'
PRIORITY = 'pods "a" is forbidden: no PriorityClass with name nope was found'
WEBHOOK = 'admission webhook "v.example.com" denied the request: exceeded quota: five a day'
VOLCANO = 'admission webhook "validatepod.volcano.sh" denied the request: '
NOT_ENQUEUED = VOLCANO + "failed to create pod <default/a> as the podgroup phase is Pending"
NO_TOKEN = 'pods "a" is forbidden: no API token found for service account "robot", retry after it is created'
BLOCK_OWNER = 'pods "a" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource'
PLATFORM = 'pods "a" is forbidden: the freeze of project research has not been lifted'
RATIO = 'pods "lr" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000'
LEAST = 'pods "lr" is forbidden: minimum memory usage per Pod is 1Gi, but request is 1Mi'
POLICY = "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: exceeded quota: x"
NO_LIMITS = 'pods "a" is forbidden: failed quota: compute: must specify limits.cpu for: main; requests.memory for: main'
NO_QUOTA = 'pods "a" is forbidden: insufficient quota to consume: requests.nvidia.com/gpu'
OTHER_PRIORITY = (
    'pods "a" is forbidden: the integer value of priority (2) must not be provided in pod spec; '
    "priority admission controller computed 0 from the given PriorityClass name"
)
RUNTIME = 'pods "a" is forbidden: pod rejected: RuntimeClass "kata" not found'
OVERHEAD = "pods \"a\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
CONFLICT = 'pods "a" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[a] = 1; pod.spec.nodeSelector[a] = 2'
SELECTOR = 'pods "a" is forbidden: pod node label selector conflicts with its namespace node label selector'
SELECTORS = 'pods "a" is forbidden: pod node label selector labels conflict with its namespace whitelist'
SECRET = (
    'pods "a" is forbidden: volume with secret.secretName="s" is not allowed because service account robot '
    "does not reference that secret"
)
IMAGES = 'pods "a" is forbidden: image policy webhook backend denied one or more images: unsigned'
TOPOLOGY = (
    'pods "a" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone '
    "but only key kubernetes.io/hostname is allowed"
)
OPENSHIFT = 'pods "a" is forbidden: unable to validate against any security context constraint: [provider restricted]'
TOLERATIONS = (
    "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"
)
SCOPES = "insufficient quota to match these scopes: [{PriorityClass Exists []}]"
UNREADY = 'pods "a" is forbidden: not yet ready to handle request'
STRICT = 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.foo"'


@pytest.mark.parametrize(
    ("status", "reason", "message", "verdict", "code"),
    [
        (403, "Forbidden", QUOTA, "retry", "QuotaExceeded"),
        (403, "Forbidden", ACCOUNT, "retry", "ServiceAccountNotFound"),
        (403, "Forbidden", RBAC, "retry", "ClusterDenied"),
        (400, "", NOT_ENQUEUED, "retry", "GangUnschedulable"),
        (403, "Forbidden", NOT_ENQUEUED, "retry", "GangUnschedulable"),
        (400, "", VOLCANO + "unable to find job queue", "fail", "RefusedByCluster"),
        (401, "Unauthorized", "Unauthorized", "retry", "ClusterDenied"),
        (404, "NotFound", 'namespaces "nonexist" not found', "retry", "NamespaceNotFound"),
        (404, "NotFound", "the server could not find the requested resource", "retry", "ClusterError"),
        (403, "Forbidden", TERMINATING, "fail", "NamespaceTerminating"),
        (403, "Forbidden", POD_SECURITY, "fail", "RefusedByCluster"),
        (403, "Forbidden", LIMIT_RANGE, "fail", "RefusedByCluster"),
        (403, "Forbidden", PRIORITY, "fail", "RefusedByCluster"),
        (403, "Forbidden", WEBHOOK, "fail", "RefusedByCluster"),
        (403, "Forbidden", POLICY, "fail", "RefusedByCluster"),
        (403, "Forbidden", LEAST, "fail", "RefusedByCluster"),
        (403, "Forbidden", RATIO, "fail", "RefusedByCluster"),
        (403, "Forbidden", NO_LIMITS, "fail", "RefusedByCluster"),
        (403, "Forbidden", NO_QUOTA, "fail", "RefusedByCluster"),
        (403, "Forbidden", OTHER_PRIORITY, "fail", "RefusedByCluster"),
        (403, "Forbidden", RUNTIME, "fail", "RefusedByCluster"),
        (403, "Forbidden", OVERHEAD, "fail", "RefusedByCluster"),
        (403, "Forbidden", CONFLICT, "fail", "RefusedByCluster"),
        (403, "Forbidden", SELECTOR, "fail", "RefusedByCluster"),
        (403, "Forbidden", SELECTORS, "fail", "RefusedByCluster"),
        (403, "Forbidden", SECRET, "fail", "RefusedByCluster"),
        (403, "Forbidden", IMAGES, "fail", "RefusedByCluster"),
        (403, "Forbidden", TOPOLOGY, "fail", "RefusedByCluster"),
        (403, "Forbidden", OPENSHIFT, "fail", "RefusedByCluster"),
        (500, "InternalError", TOLERATIONS, "fail", "RefusedByCluster"),
        (500, "InternalError", f"Internal error occurred: {SCOPES}", "fail", "RefusedByCluster"),
        (403, "Forbidden", UNREADY, "retry", "RefusedByCluster"),
        (403, "Forbidden", NO_TOKEN, "retry", "RefusedByCluster"),
        (403, "Forbidden", BLOCK_OWNER, "retry", "RefusedByCluster"),
        (403, "Forbidden", PLATFORM, "retry", "RefusedByCluster"),
        (403, "Forbidden", "", "retry", "RefusedByCluster"),
        (400, "BadRequest", STRICT, "fail", "RefusedByCluster"),
        (422, "Invalid", 'Pod "A_b" is invalid: metadata.name: Invalid value: "A_b"', "fail", "RefusedByCluster"),
        (413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", "fail", "RefusedByCluster"),
        (500, "", "etcdserver: request is too large", "fail", "RefusedByCluster"),
        (500, "InternalError", 'failed calling webhook "v.example.com": no endpoints', "retry", "ClusterError"),
        (409, "AlreadyExists", 'object is being deleted: pods "a" already exists', "wait", "NameTerminating"),
        (429, "TooManyRequests", "too many requests", "retry", "ClusterThrottled"),
        (503, "ServiceUnavailable", "etcdserver: leader changed", "retry", "ClusterError"),
        (504, "Timeout", "Timeout: request did not complete", "retry", "ClusterError"),
    ],
)
def test_the_verdict_and_code_of_each_refusal(status: int, reason: str, message: str, verdict: str, code: str) -> None:
    assert judge(status, reason, message, seen_before=False) == (verdict, code)


def test_a_deleted_namespace_fails_its_jobs() -> None:
    gone = judge(404, "NotFound", 'namespaces "research" not found', seen_before=True)
    assert gone == ("fail", "NamespaceDeleted")


def test_the_cause_is_enough_for_a_terminating_namespace() -> None:
    causes = [("NamespaceTerminating", "namespace term is being terminated")]
    assert judge(403, "Forbidden", "reworded", causes, seen_before=True) == ("fail", "NamespaceTerminating")


@pytest.mark.parametrize(
    ("status", "reason", "message", "said"),
    [
        (403, "Forbidden", TERMINATING, "the namespace team-a is being deleted, so nothing can be created in it"),
        (404, "NotFound", 'namespaces "team-a" not found', "the namespace team-a has been deleted"),
        (401, "Unauthorized", "Unauthorized", "the cluster does not accept the credentials of jobgate: Unauthorized"),
        (403, "Forbidden", RBAC, f"jobgate lacks a right in the cluster, which an operator can grant: {RBAC}"),
        (413, "", "limit is 3145728", "the object is too large for the cluster: limit is 3145728"),
        (500, "", "etcdserver: request is too large", "is too large for the cluster: etcdserver: request is too large"),
        (429, "TooManyRequests", "too many requests", "the API server of the cluster is busy: too many requests"),
        (503, "", "etcdserver: no leader", "the API server of the cluster reports an error: etcdserver: no leader"),
        (403, "Forbidden", QUOTA, QUOTA),
        (403, "Forbidden", WEBHOOK, WEBHOOK),
        (403, "Forbidden", "", "the cluster refuses the object with 403 and without a message"),
    ],
)
def test_a_refusal_names_its_cause_in_the_words_of_a_user(status: int, reason: str, message: str, said: str) -> None:
    _, code = judge(status, reason, message, seen_before=True)
    assert refusal_message(code, status, message, "team-a").endswith(said)


def test_a_namespace_that_is_not_there_yet_and_a_cluster_that_does_not_answer_are_named() -> None:
    _, code = judge(404, "NotFound", 'namespaces "team-a" not found', seen_before=False)
    assert refusal_message(code, 404, "", "team-a") == "the namespace team-a does not exist"
    unreachable = refusal_message("ClusterUnreachable", None, "timed out", "team-a")
    assert unreachable == "the API server of the cluster does not answer: timed out"


@pytest.mark.parametrize(
    ("amounts", "verdict"),
    [
        ("requested: pods=1, used: pods=5, limited: pods=5", "retry"),
        ("requested: requests.cpu=2, used: requests.cpu=3, limited: requests.cpu=4", "retry"),
        ("requested: requests.cpu=4, used: requests.cpu=1, limited: requests.cpu=4", "retry"),
        # The pod alone is larger than the quota.
        ("requested: requests.cpu=8, used: requests.cpu=0, limited: requests.cpu=4", "fail"),
        (
            "requested: requests.cpu=1,requests.memory=2Gi, used: a=1, limited: requests.cpu=1,requests.memory=2G",
            "fail",
        ),
        ("requested: requests.nvidia.com/gpu=4, used: b=1, limited: requests.nvidia.com/gpu=2", "fail"),
        # An admin closes a namespace for a while with a quota of 0.
        ("requested: requests.cpu=8, used: requests.cpu=0, limited: requests.cpu=0", "retry"),
        ("requested: pods=1, used: pods=0, limited: pods=many", "retry"),
        ("requested: odd", "retry"),
    ],
)
def test_a_pod_that_is_larger_than_a_quota_does_not_wait_for_it(amounts: str, verdict: str) -> None:
    found, code = judge(403, "Forbidden", f'pods "a" is forbidden: exceeded quota: rq, {amounts}', seen_before=True)
    assert (found, code) == (verdict, "QuotaExceeded" if verdict == "retry" else "RefusedByCluster")
