"""The warnings that are kept with an object: those of jobgate, and the first ones of the cluster."""

from collections.abc import Sequence

from app.domain.plan import JobWarning
from app.domain.status.records import MOST_WARNINGS
from app.domain.vocabulary import WarningSource


def known_warnings(known: Sequence[JobWarning], of_cluster: Sequence[JobWarning]) -> tuple[JobWarning, ...]:
    """Return the known warnings and the new ones of the cluster.

    After a restart of the controller, the cluster repeats its warnings about further objects.
    """
    own = [warning for warning in known if warning.source is WarningSource.JOBGATE]
    others = dict.fromkeys((*(warning for warning in known if warning.source is WarningSource.CLUSTER), *of_cluster))
    return (*own, *list(others)[:MOST_WARNINGS])
