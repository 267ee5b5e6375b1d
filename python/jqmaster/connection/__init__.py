"""Ways to Redis: URLs, where a namespace lives, connections that find their way back, waking, shared round trips."""
