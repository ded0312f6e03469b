"""The views of dry runs: what a submission would store and create."""

from typing import Any

from app.api.closed_sets import TaskRestartPolicy
from app.api.views import Int32, View


class TaskPlanView(View):
    """A task of a planned job."""

    name: str
    replicas: Int32
    restart_policy: TaskRestartPolicy
    restart_limit: Int32 | None


class PlanView(View):
    """What a manifest means."""

    tasks: list[TaskPlanView]
    pods: list[str]
    services: list[str]
    active_deadline_seconds: int | None
    pending_deadline_seconds: int | None
    ttl_seconds_after_finished: int | None


class ResourceDryRunView(View):
    """What a submission would store. A dry run stores nothing."""

    dry_run: bool
    manifest: dict[str, Any]


class DryRunView(ResourceDryRunView):
    """What a submission would store, and the Kubernetes objects that it would create. A dry run stores nothing.

    `manifests` has the objects of the job itself and of the first replicas of each task, at most about 100 objects and
    4 MiB. `manifestsOmitted` is the number of the other objects.
    """

    plan: PlanView
    manifests: list[dict[str, Any]]
    manifests_omitted: Int32


class ResourceDryRunList(View):
    """What a submission of several objects would store, in the order of the request."""

    items: list[ResourceDryRunView]


class DryRunList(View):
    """What a submission of several jobs would store and create, in the order of the request."""

    items: list[DryRunView]
