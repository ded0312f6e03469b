"""The node agent, which stands in for a kubelet: it runs the pods of one node as local processes.

It works with any Kubernetes API server, which it reaches through a kubeconfig. Decisions are pure and take the current
time as a parameter: environment, hosts files, pod status and restarts. `agent`, `pods.worker` and `containers.runner`
perform the I/O. All processes end with the agent; those that survive a SIGKILL are killed when it starts again.
"""
