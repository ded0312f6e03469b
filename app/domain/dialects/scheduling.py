"""Which scheduler places a job's pods here."""

from app.domain.dialects.base import Site


def scheduler_here(asked: str | None, site: Site) -> tuple[str | None, str | None]:
    """The cluster's name for upstream's scheduler, and the asked-for one if this cluster has none of its kind.

    None as the first is the default scheduler.
    """
    if not asked:
        return None, None
    here = site.schedulers.get(asked)
    return here, None if here else asked
