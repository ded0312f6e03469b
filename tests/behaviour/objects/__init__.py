"""The objects of a job in the cluster, what refuses or changes them, and the objects of others."""
