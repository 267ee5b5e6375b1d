"""Several namespaces of a Redis Cluster that are used as one (docs/cluster.md)."""
