"""The loops of a control plane: scheduling, garbage collection, namespaces, nodes, quota, event expiry.

Their law: each reads the store's feed, decides, and writes through the registry like any client would. A conflict or
a vanished object is ordinary; whatever went wrong is tried again when the next change comes.
"""
