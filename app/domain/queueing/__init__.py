"""What Kueue admits: the queue of a job, its Workload, and the admission that its pods follow. Pure.

Kueue admits, the scheduler places, jobgate does neither. What reconcile does with an admission is in
`app/domain/reconcile/queues/permit.py`.
"""
