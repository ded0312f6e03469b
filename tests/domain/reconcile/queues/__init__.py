"""Jobs with a queue of Kueue, and jobs that wait for room before it."""
