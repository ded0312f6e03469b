"""`python -m bench queues`: jobs that Kueue admits, beside Kueue alone and beside jobs without a queue.

command       the parts of a run, and their order
objects       a queue with quota for all, its Workloads and jobs
watching      when the watches of the benchmark show what happens to a job
admissions    Workloads and jobs that are submitted at a rate, until all their pods are created
restarts      the time and CPU time until a controller has reconciled all jobs, with and without Workloads
"""
