"""Which pod templates an installation accepts: the Pod Security Standards of Kubernetes, and rules of jobgate's own.

The checks are pure functions of a template as its user wrote it. What the installation's own configuration adds to a
pod later (accelerators, schedulers, the containers of a SampleSet's servers) is not checked.
"""

from app.domain.policy.pod_policy import PodPolicy
from app.domain.policy.table import CONTROLS, JOBGATE_CONTROLS, Level
from app.domain.policy.template import DeclaredTemplate

__all__ = ["CONTROLS", "JOBGATE_CONTROLS", "DeclaredTemplate", "Level", "PodPolicy"]
