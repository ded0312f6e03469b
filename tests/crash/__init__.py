"""Crashes and freezes of the gateway and of the parts around it: no job is lost, and nothing is done twice."""
