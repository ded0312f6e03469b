"""`jobgate recover`: what it finds in cluster and database, and what it does about that in place of the controller."""
