"""Turns raw pods into observations (`pods`), and replicas into the status of their job (`rollup`)."""
