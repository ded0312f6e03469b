"""The conditions under which a process may act as the controller: lease, identity of the cluster, contact with it."""
