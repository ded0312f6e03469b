"""The pure reconcile of SampleSets and SampleJobs: observed objects in; record, events and actions out."""
