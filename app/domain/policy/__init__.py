"""The pod policy: the Pod Security Standards of Kubernetes, and further controls of jobgate.

The checks are pure functions of a template as its user wrote it. Additions from the configuration of the installation
(accelerators, schedulers, the runtime servers of SampleSets) are not checked.
"""

from app.domain.policy.pod_policy import PodPolicy
from app.domain.policy.table import CONTROLS, JOBGATE_CONTROLS, Level
from app.domain.policy.template import DeclaredTemplate

__all__ = ["CONTROLS", "JOBGATE_CONTROLS", "DeclaredTemplate", "Level", "PodPolicy"]
