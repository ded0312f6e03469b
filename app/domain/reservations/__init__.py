"""What a live job reserves so that no other job takes it: names in its namespace, and a number of planned pods."""
