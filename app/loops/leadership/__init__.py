"""The conditions under which a process may act as the controller: lease, identity of the cluster, contact with it.

`app.db.installation.leases` decides who holds the lease, and refuses the writes of a former holder.
"""
