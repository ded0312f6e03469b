"""Maps the scheduler names of the five systems to the schedulers of this cluster."""

from app.domain.kinds.job_kind import Site
from app.domain.plan import Manifest


def scheduler_here(requested: str | None, site: Site) -> tuple[str | None, str | None]:
    """Return this cluster's name of a requested scheduler, and the requested name if the cluster lacks the scheduler.

    The first value is None for the default scheduler.
    """
    if not requested:
        return None, None
    here = site.schedulers.get(requested)
    return here, None if here else requested


def with_own_scheduler(pod_spec: Manifest, site: Site) -> Manifest:
    """Return the pod spec with its schedulerName mapped to the name in this cluster, if the site maps it."""
    named = pod_spec.get("schedulerName")
    if named is None or named not in site.schedulers:
        return pod_spec
    rest = {key: value for key, value in pod_spec.items() if key != "schedulerName"}
    here = site.schedulers[named]
    # The site maps a name to the empty text for the cluster's default scheduler.
    return {**rest, "schedulerName": here} if here else rest
