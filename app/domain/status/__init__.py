"""Turns raw pods into observations (`pods`, `diagnosis`), and replicas into the status of their job (`rollup`)."""
