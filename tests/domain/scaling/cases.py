"""Short ways to say a job, a node, a cluster."""

from typing import Any

from app.domain.scaling.values import Inventory, NodeCapacity, ResourceAmount, ScalableJob
from app.domain.vocabulary import JobPhase

ROOMY = ResourceAmount(cpu=99_999, memory=99_999, gpu=99)


def amount(cpu: int = 0, memory: int = 0, gpu: int = 0) -> ResourceAmount:
    return ResourceAmount(cpu=cpu, memory=memory, gpu=gpu)


def a_job(name: str = "a", size: int = 1, bounds: tuple[int, int] = (1, 3), **more: Any) -> ScalableJob:
    """Running; each replica asks for one CPU unless `need` says otherwise."""
    values: dict[str, Any] = {"task": "trainer", "need": amount(cpu=1000), "phase": JobPhase.RUNNING}
    least, most = bounds
    return ScalableJob(uid=name, namespace="team", name=name, size=size, least=least, most=most, **{**values, **more})


def a_node(name: str = "n1", free: ResourceAmount = ROOMY, *, slots: int = 110, **more: Any) -> NodeCapacity:
    return NodeCapacity(name=name, free=free, slots=slots, **more)


def a_cluster(total: ResourceAmount, requested: ResourceAmount, *nodes: NodeCapacity) -> Inventory:
    """One roomy node, unless nodes are given."""
    return Inventory(nodes=nodes or (a_node(),), total=total, requested=requested)
