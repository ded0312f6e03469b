"""Fault injection and pod scripts: the ways in which a test makes the embedded cluster misbehave.

Only the entry points (`devcluster.run` and `devcluster.node.__main__`) import this package. The API server and the node
know the interfaces that it implements: `devcluster.server.interception` and `devcluster.node.pods.player`.
"""
