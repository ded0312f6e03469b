"""How replicas fail, are replaced, and leave evidence."""
