"""What users see of queues: `recorder` stores it, with the places of the jobs that wait (`positions`).

Only Workloads that belong to jobs count (`owners`). What the reconcile of a job needs to know of Kueue is in
`app.loops.jobs.queues`.
"""
