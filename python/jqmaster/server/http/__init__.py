"""A server's HTTP API: a translation of the scripts' interface (docs/protocol.md, openapi/master.yaml)."""
