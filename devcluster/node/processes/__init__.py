"""Local processes: started in mount namespaces of their own, awaited, and killed with all their descendants."""
