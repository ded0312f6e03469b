"""Maps the scheduler names of the five systems to the schedulers of this cluster."""

from app.domain.dialects.base import Site
from app.domain.plan import Manifest


def scheduler_here(asked: str | None, site: Site) -> tuple[str | None, str | None]:
    """The name of the requested scheduler in this cluster, and the requested name if the cluster has no such scheduler.

    The first is None for the default scheduler.
    """
    if not asked:
        return None, None
    here = site.schedulers.get(asked)
    return here, None if here else asked


def with_own_scheduler(pod_spec: Manifest, site: Site) -> Manifest:
    """The pod spec with its schedulerName mapped to the name in this cluster, if the site maps it."""
    named = pod_spec.get("schedulerName")
    if named is None or named not in site.schedulers:
        return pod_spec
    rest = {key: value for key, value in pod_spec.items() if key != "schedulerName"}
    here = site.schedulers[named]
    return {**rest, "schedulerName": here} if here else rest
