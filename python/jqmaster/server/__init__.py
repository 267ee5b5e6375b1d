"""The JQ master: what stands between HTTP and the engine, dispatch to push workers, its own Redis."""
