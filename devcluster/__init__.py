"""The embedded cluster: a Kubernetes control plane and nodes in one process, for laptops and tests.

Its law: it is a stranger to the rest of the product. It imports nothing of `app` outside this package, and everybody
else reaches it through a kubeconfig only. Where it differs from a real control plane, the real one is right.
"""
