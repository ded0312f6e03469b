"""The controllers of a control plane: scheduler, garbage collector, namespaces, nodes, quota, volumes, StatefulSets.

Those of Kueue are a package. Each controller reads the feed of the store, decides, and writes through the registry as a
client does. A conflict or a missing object is no failure: the controller tries again at the next change.
"""
