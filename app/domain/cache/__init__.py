"""The data cache: what SampleSets and SampleJobs mean.

- `kinds`, `specs`: the two kinds, their specs, and the rules for accepted manifests.
- `manifests`, `naming`: the Kubernetes objects of a SampleSet, their names and labels.
- `job_options`: the option files of jobs, which the controller posts to the runtime servers.
- `reconcile`: one reconcile of a SampleSet or a SampleJob.
- `edits`, `status`: edits that a state forbids; figures, conditions and native status.

Everything here is pure and repeatable: equal values give equal objects. The contents of Secrets are passed in, and
leave only in the option file of a sync.
"""
