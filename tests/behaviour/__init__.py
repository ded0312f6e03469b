"""What the documentation promises of jobs, on a cluster with a node that runs their pods."""
