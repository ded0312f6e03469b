"""The controller of SampleSets and SampleJobs.

`reconciler` queues them and reconciles each in turn: `observation` reads the cluster, `decisions` calls the pure
reconcile, and `actuator` carries out its actions. `runtime_servers` talks to the servers in the pods of a set.
"""
