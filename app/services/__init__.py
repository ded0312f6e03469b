"""What the gateway can be asked to do. One transaction each; none of them touches the cluster.

The one named exception is `logs`, which reads a container's log through. Callers are expected to have been told by
`access` what they may do; time and randomness come in as arguments.
"""
