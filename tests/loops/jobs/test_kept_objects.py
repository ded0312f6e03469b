"""Ended jobs whose objects stay in the cluster for a time."""

from datetime import timedelta

from tests.loops.harness import Harness


async def test_an_ended_job_whose_objects_stay_for_days_is_not_reconciled_before(harness: Harness) -> None:
    uid = await harness.submit(replicas=1)
    ttl = """'{metadata,annotations}', '{"jobgate.dev/ttl-seconds-after-finished": "172800"}'"""
    async with harness.db.begin() as connection:
        await connection.execute(f"UPDATE jobs SET manifest = jsonb_set(manifest::jsonb, {ttl}) WHERE uid = $1", uid)
    async with harness.reconciling():
        pods = await harness.pods_until(bool)
        await harness.kubelet.run(*pods)
        await harness.kubelet.finish(*pods)
        job = await harness.job_until(uid, lambda job: job.recorded.status.quiet)
    assert job.wake_at is not None
    assert job.wake_at - harness.clock.now() > timedelta(days=1)
    # A decision from before the end may still wake the job within seconds, once.
    due = harness.queue.bring_due()
    assert due is None or due < 60, "the stored time wakes it"
