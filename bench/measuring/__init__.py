"""What measurements share: bodies, the load client, processes and tables."""
