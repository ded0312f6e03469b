"""Copies of all objects of a resource, by list and watch."""
