"""The pure core of jobgate: functions of values, without I/O, clock or randomness.

`kinds` accepts manifests and turns those of jobs into plans, and `manifests` turns plans into Kubernetes objects; they
meet only in `plan`. `planning` offers both to the API and to the controller, and `sample_drafts` accepts new
SampleSets and SampleJobs.

`status` turns raw pods into observations. `reconcile` compares plan, intent, record and observed pods of a job, and
returns its new status and the actions to execute. `cache` has the Kubernetes objects and the reconcile of SampleSets
and SampleJobs.
"""
