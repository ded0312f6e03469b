"""The data cache: what SampleSets and SampleJobs mean.

- `kinds`, `specs`: the two kinds, what users may write, and every rule that an accepted manifest meets.
- `manifests`, `naming`: the Kubernetes objects of a SampleSet, their names and labels.
- `job_options`: the option files that tell a set's runtime servers what to do.
- `reconcile`: one reconcile of a SampleSet or a SampleJob.
- `edits`, `native`: edits that a state forbids; the status in upstream's format.

Everything here is pure and repeatable: equal values give equal objects. The contents of Secrets are passed in, and
leave only in the option file of a sync.
"""
