"""The data cache: what SampleSets and SampleJobs mean, and the drivers that turn them into objects and job options.

Values in, manifests and options out. What secrets hold is passed in and leaves only in a sync's option file.
"""
