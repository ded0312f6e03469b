"""Computes the sizes of elastic jobs from the capacity of the cluster and the requests of its pods.

nodes, pods ─▶ inventory ─┐
manifests ─▶ candidates ──┴─▶ dry run ─▶ a decision for each job, with its reason
"""
