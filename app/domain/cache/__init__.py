"""The data cache: what SampleSets and SampleJobs mean. Their kinds and specs are in `app.domain.kinds.samples`.

- `limits`, `source_limits`, `worker_hosts`: what an installation lets manifests name.
- `manifests`, `naming`: the Kubernetes objects of a SampleSet, their names and labels.
- `job_options`: the option files of jobs, which the controller posts to the runtime servers.
- `reconcile`: one reconcile of a SampleSet or a SampleJob.

Everything here is pure and repeatable: equal values give equal objects. The contents of Secrets are passed in, and
leave only in the option file of a sync.
"""
