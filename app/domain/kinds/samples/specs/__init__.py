"""What users write in SampleSets and SampleJobs: typed specs, and every rule that an accepted manifest meets."""
