"""What one caller may take of a process: turns at costly work, long-running requests, and how often work starts."""
