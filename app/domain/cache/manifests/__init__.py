"""The Kubernetes objects of a SampleSet as plain dicts: volume and claim, Service, token Secret, StatefulSet."""
