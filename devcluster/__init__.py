"""The embedded cluster: a Kubernetes control plane and nodes in one process, for laptops and tests.

The embedded cluster shares no code with jobgate: it imports nothing of `app`, and jobgate reaches it through a
kubeconfig, as it reaches any other cluster. A difference from a real control plane is a fault of the embedded cluster.
"""
