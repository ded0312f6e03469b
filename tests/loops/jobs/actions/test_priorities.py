"""The priority that jobs get from the classes of the cluster."""

import asyncio

from aiohttp import web

from app.domain.plan import PriorityClassKind, PriorityClassRef
from app.domain.queueing.priorities import Priority
from app.k8s.errors import KubeServerError
from app.loops.jobs.actions.priorities import DEFAULT_TTL, Priorities
from tests.k8s.support import ManualClock, api_of

USUAL = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}
CLASSES = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClassList", "metadata": {}, "items": [USUAL]}


async def test_jobs_that_request_no_priority_share_a_list_of_the_classes_or_its_failure() -> None:
    answers, clock = iter([503, 200, 200]), ManualClock()
    sent: list[int] = []

    async def answer(_: web.Request) -> web.Response:
        clock.seconds += 0.1  # a list takes time
        status = next(answers)
        sent.append(status)
        return web.json_response(CLASSES, status=status)

    async with api_of(answer) as api:
        priorities = Priorities(api, clock, timeout=5.0)
        failed = await asyncio.gather(*(priorities.find(None) for _ in range(5)), return_exceptions=True)
        assert [type(error) for error in failed] == [KubeServerError] * 5
        assert sent == [503]
        usual = Priority(value=7, of=PriorityClassRef(kind=PriorityClassKind.POD, name="usual"))
        for lists in ([503, 200], [503, 200], [503, 200, 200]):
            assert await asyncio.gather(*(priorities.find(None) for _ in range(5))) == [usual] * 5
            assert sent == lists
            clock.seconds += DEFAULT_TTL * 0.6
