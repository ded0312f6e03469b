"""The controller of SampleSets and SampleJobs."""
