"""Sums of usage by day and group, and the rates of what jobs hold now."""
