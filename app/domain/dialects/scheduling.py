"""Which scheduler places a job's pods here."""

from app.domain.dialects.base import Site
from app.domain.plan import Manifest


def scheduler_here(asked: str | None, site: Site) -> tuple[str | None, str | None]:
    """The cluster's name for upstream's scheduler, and the asked-for one if this cluster has none of its kind.

    None as the first is the default scheduler.
    """
    if not asked:
        return None, None
    here = site.schedulers.get(asked)
    return here, None if here else asked


def with_own_scheduler(pod_spec: Manifest, site: Site) -> Manifest:
    """A template's pod spec with its own scheduler under the name that it has here, when the site knows it."""
    named = pod_spec.get("schedulerName")
    if named is None or named not in site.schedulers:
        return pod_spec
    rest = {key: value for key, value in pod_spec.items() if key != "schedulerName"}
    here = site.schedulers[named]
    return {**rest, "schedulerName": here} if here else rest
