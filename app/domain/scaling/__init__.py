"""Elasticity decided: what the cluster has, what jobs ask for, and the sizes that follow. Pure.

nodes, pods ─▶ inventory ─┐
manifests ─▶ candidates ──┴─▶ dry run ─▶ a decision for each job, with its reason
"""
