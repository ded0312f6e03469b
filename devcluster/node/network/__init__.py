"""The network of pods: their addresses, local routes to them, and the hosts files that stand in for cluster DNS."""
