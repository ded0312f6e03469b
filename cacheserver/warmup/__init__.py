"""The warm-up of a cache by all servers of a SampleSet, which share the files among them."""
