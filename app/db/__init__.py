"""All SQL of jobgate. Callers pass and receive values. They never see a query or an error of the driver.

Loose modules concern the objects of all resources, and use the packages of these.
"""
