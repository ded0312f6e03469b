"""Plans the gang of a job: which replicas its scheduler places together, and the APIs that the scheduler may use."""

from dataclasses import replace
from typing import Final

from app.domain.kinds.job_kind import Site
from app.domain.manifests.gangs import VOLCANO_QUEUE, has_queues, names_own_group
from app.domain.plan import GangPlan, JobPlan, Manifest, Ranks

DEFAULT_SCHEDULER: Final = "default-scheduler"
_NOT_REQUESTED: Final = GangPlan(members=Ranks({}), apis=())


def plan_gang(plan: JobPlan, manifest: Manifest, site: Site) -> GangPlan | None:
    """Return the gang of a planned job; None if its replicas are placed one by one.

    A job with a queue of TensorStack's scheduler or of Volcano is a gang of any size. Any other job is one if it needs
    more than one replica, its pods have one scheduler, and they name no group of their own.
    """
    tasks = [task for task in plan.tasks if task.size]
    schedulers = {task.template["spec"].get("schedulerName") or DEFAULT_SCHEDULER for task in tasks}
    api = site.gang_schedulers.get(schedulers.pop()) if len(schedulers) == 1 else None
    queue = (manifest["metadata"].get("annotations") or {}).get(VOLCANO_QUEUE, "")
    is_group = sum(task.needed for task in tasks) > 1 or (queue and has_queues(api))
    if not is_group or any(names_own_group(task.template) for task in tasks):
        api = None
    if plan.gang is None and api is None:
        return None
    members = Ranks({task.name: range(task.needed) for task in tasks})
    requested = plan.gang or _NOT_REQUESTED
    classes = {task.template["spec"].get("priorityClassName") or "" for task in tasks}
    return replace(
        requested,
        members=members,
        apis=(*([api] if api is not None else ()), *requested.apis),
        queue=requested.queue or queue,
        # A PodGroup has one priority, so pods of several classes leave it to the cluster's default.
        priority_class=classes.pop() if len(classes) == 1 else "",
    )
