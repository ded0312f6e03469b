"""What Kueue is asked for, and how its answer is read."""
