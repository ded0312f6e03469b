"""The node agent: a kubelet stand-in that runs the pods of one node as real local processes.

It speaks to any Kubernetes API through a kubeconfig, and imports nothing of `app` outside `devcluster`.
Deciding (environment, hosts, status, back-off, logs) is pure and takes `now`; `agent`, `pod` and `container` do.
Whatever it starts dies with it, or is killed by its next start.
"""
