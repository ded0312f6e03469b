"""The autoscaler: it reads the capacity of the cluster, and resizes elastic jobs as `app.domain.scaling` determines."""
