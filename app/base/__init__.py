"""What every package may use: the clock, cancellation, threads, caches, instruments of metrics.

These modules know nothing of jobgate, and import nothing of it.
"""
