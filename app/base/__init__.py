"""What every package may use: the clock, cancellation, threads, caches, instruments of metrics.

These modules import nothing else of jobgate.
"""
