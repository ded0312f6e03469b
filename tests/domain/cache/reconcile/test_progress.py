"""The progress of operations, and the caches of single nodes: what is known, and what is not."""

import pytest

from app.domain.cache.reconcile.cache_status import NodeCache, ServerReport, node_caches
from app.domain.cache.reconcile.progress import OperationProgress, ServerProgress, overall
from app.domain.cache.reconcile.values import JobObserved, ServerAnswer
from app.domain.cache.vocabulary import SampleJobPhase, ServerJobState, SetPhase
from tests.domain.cache.reconcile.made import at_work, decide_job, decide_set, pods

HALF = ServerProgress(files_done=2, files_total=4)
SILENT = "the server does not answer"


def summed(
    files_done: int | None, files_total: int | None, bytes_done: int | None, reporting: int, servers: int
) -> OperationProgress:
    return OperationProgress(
        files_done=files_done, files_total=files_total, bytes_done=bytes_done, reporting=reporting, servers=servers
    )


OVERALL: dict[str, tuple[list[ServerProgress | None], OperationProgress | None]] = {
    "no server": ([], None),
    "no report": ([None, None], None),
    "a sync": ([ServerProgress(files_done=3, bytes_done=50)], summed(3, None, 50, 1, 1)),
    "all of a warm-up": ([HALF, ServerProgress(files_done=3, files_total=3)], summed(5, 7, None, 2, 2)),
    "a server that does not report": ([HALF, None], summed(2, None, None, 1, 2)),
    "a server without a total": ([HALF, ServerProgress(files_done=1)], summed(3, None, None, 2, 2)),
    "only a total": ([ServerProgress(files_total=4)], summed(None, 4, None, 1, 1)),
}


@pytest.mark.parametrize(("reports", "wanted"), OVERALL.values(), ids=OVERALL)
def test_progress_is_summed_and_a_total_is_that_of_all_servers(
    reports: list[ServerProgress | None], wanted: OperationProgress | None
) -> None:
    assert overall(reports) == wanted


def posted(*answers: tuple[ServerJobState, ServerProgress | None]) -> JobObserved:
    found = [ServerAnswer(index=index, status=status, progress=its) for index, (status, its) in enumerate(answers)]
    return JobObserved(set_uid="u", answers=tuple(found))


R = ServerJobState
FOLLOWED = {
    "running": (posted((R.RUNNING, HALF), (R.WAITING, None)), summed(2, None, None, 1, 2)),
    "silent": (posted((R.UNKNOWN, None), (R.UNKNOWN, None)), None),
    "ended": (posted((R.SUCCESS, HALF), (R.SUCCESS, HALF)), summed(4, 8, None, 2, 2)),
    "failed": (posted((R.RUNNING, HALF), (R.FAIL, HALF)), summed(4, 8, None, 2, 2)),
}


@pytest.mark.parametrize(("observed", "wanted"), FOLLOWED.values(), ids=FOLLOWED)
def test_a_job_has_the_progress_that_its_servers_report_now(
    observed: JobObserved, wanted: OperationProgress | None
) -> None:
    before = summed(1, None, None, 2, 2)
    decision = decide_job("warmup", observed, SampleJobPhase.RUNNING, job="a", servers=(0, 1), progress=before)
    assert decision.record.progress == wanted


def test_a_job_that_begins_again_has_no_progress() -> None:
    observed = JobObserved(set_uid="u", digest="d2")
    decision = decide_job("rmr", observed, SampleJobPhase.FAILED, digest="d1", progress=summed(1, None, None, 1, 1))
    assert decision.record.progress is None


@pytest.mark.parametrize(
    ("status", "wanted"),
    [(R.RUNNING, summed(2, 4, None, 1, 1)), (R.UNKNOWN, None), (R.SUCCESS, None), (R.FAIL, None)],
)
def test_a_set_has_the_progress_of_its_sync_while_that_runs(
    status: ServerJobState, wanted: OperationProgress | None
) -> None:
    sync = ServerAnswer(index=0, status=status, progress=HALF)
    before = summed(1, None, None, 1, 1)
    decision = decide_set(SetPhase.SYNCING, at_work(sync=sync), sync_job="a", sync_progress=before)
    assert decision.record.sync_progress == wanted


def report(cached: str, error: str = "") -> ServerReport:
    return ServerReport(node="", cached_size=cached, error_message=error)


def node(name: str, index: int, cached: int | None, message: str = "") -> NodeCache:
    return NodeCache(node=name, server=f"imagenet-runtime-{index}", cached_bytes=cached, message=message)


NODES: dict[str, tuple[tuple[str, ...], dict[int, ServerReport | None], tuple[NodeCache, ...]]] = {
    "no servers": ((), {}, ()),
    "all": (("n0", "n1"), {0: report("5"), 1: report("0")}, (node("n0", 0, 5), node("n1", 1, 0))),
    "one is silent": (("n0", "n1"), {0: None, 1: report("7")}, (node("n0", 0, None, SILENT), node("n1", 1, 7))),
    "one is not asked": (("n0", "n1"), {0: report("5")}, (node("n0", 0, 5), node("n1", 1, None))),
    "one cannot measure": (("n0",), {0: report("", "no such disk")}, (node("n0", 0, None, "no such disk"),)),
    "partly measured": (("n0",), {0: report("5", "no volume")}, (node("n0", 0, 5, "no volume"),)),
    "not a number": (("n0",), {0: report("-5")}, (node("n0", 0, None, "cached size -5 is not a number"),)),
    "several on a node": (("n0", "n0", "n0"), {0: report("0"), 1: None, 2: report("9")}, (node("n0", 2, 9),)),
    "a silent one first": (("n0", "n0"), {0: None, 1: report("0")}, (node("n0", 1, 0),)),
}


@pytest.mark.parametrize(("nodes", "reports", "wanted"), NODES.values(), ids=NODES)
def test_the_cache_of_each_node(
    nodes: tuple[str, ...], reports: dict[int, ServerReport | None], wanted: tuple[NodeCache, ...]
) -> None:
    assert node_caches(pods(*nodes), reports) == wanted


def test_a_long_message_of_a_server_is_shortened() -> None:
    (found,) = node_caches(pods("n0"), {0: report("", "x" * 4000)})
    assert len(found.message) < 100


def test_a_set_lists_its_nodes_also_while_a_server_is_silent_and_its_sum_stays() -> None:
    observed = at_work(cache=None, reports={0: report("5"), 1: None})
    before = at_work().cache
    record = decide_set(SetPhase.READY, observed, cache=before).record
    assert record.cache == before
    assert record.nodes == (node("n0", 0, 5), node("n1", 1, None, SILENT))


def test_a_set_that_is_removed_lists_no_nodes() -> None:
    decision = decide_set(SetPhase.READY, at_work(), deleted=True, nodes=(node("n0", 0, 5),))
    assert decision.record.nodes == ()
