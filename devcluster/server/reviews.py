"""The reviews by which clients ask about their own identity and rights. The cluster has one user with all rights."""

from collections.abc import Callable
from dataclasses import dataclass

from devcluster import clock
from devcluster.errors import bad_request, forbidden_field, invalid, method_not_allowed
from devcluster.formats.objects import Object, spec

USER = "devcluster"
# The members of system:masters have all rights in a real cluster.
_GROUPS = ["system:masters", "system:authenticated"]


@dataclass(frozen=True, slots=True)
class Review:
    """A resource that answers a question on create and is never stored."""

    group: str
    kind: str
    status: Callable[[Object], Object]

    @property
    def plural(self) -> str:
        return f"{self.kind.lower()}s"

    @property
    def group_version(self) -> str:
        return f"{self.group}/v1"


def _access(review: Object) -> Object:
    """Allow everything, but refuse a review with more or fewer than one question, as a real server does."""
    asked = [name for name in ("resourceAttributes", "nonResourceAttributes") if spec(review).get(name)]
    if len(asked) != 1:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(review["kind"], "", [forbidden_field("spec.resourceAttributes", why)], REVIEWS[0].group)
    return {"allowed": True}


def _rules(_review: Object) -> Object:
    return {
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    }


def _identity(_review: Object) -> Object:
    return {"userInfo": {"username": USER, "groups": _GROUPS}}


REVIEWS = (
    Review("authorization.k8s.io", "SelfSubjectAccessReview", _access),
    Review("authorization.k8s.io", "SelfSubjectRulesReview", _rules),
    Review("authentication.k8s.io", "SelfSubjectReview", _identity),
)
_BY_PATH = {f"/apis/{review.group_version}/{review.plural}": review for review in REVIEWS}


def find(method: str, path: str) -> Review | None:
    """Return the review at a path, or None.

    Raises:
        StatusError: the method is not POST (405).
    """
    review = _BY_PATH.get(path.rstrip("/"))
    if review is not None and method != "POST":
        raise method_not_allowed()
    return review


def answer(review: Review, body: Object) -> Object:
    if not isinstance(body, dict) or body.get("kind", review.kind) != review.kind:
        raise bad_request(f"the object provided is unrecognized (must be of type {review.kind})")
    named = {"kind": review.kind, "apiVersion": review.group_version}
    metadata = {"creationTimestamp": clock.timestamp()}
    return named | {"metadata": metadata, "spec": spec(body), "status": review.status(body | named)}
