"""All SQL of jobgate. Callers pass and receive values. They never see a query or an error of the driver.

`redaction` and `former_namespaces` change objects of all resources; `cluster_namespaces` stores the namespaces of the
cluster.
"""
