"""One reconcile of a SampleSet or a SampleJob, pure: observed objects in; record, events and actions out."""
