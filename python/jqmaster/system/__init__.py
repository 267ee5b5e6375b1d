"""A system: several namespaces, its partitions, laid over the nodes of a Redis Cluster (docs/partitions.md)."""
