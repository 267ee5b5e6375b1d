"""The table of operations and of what a job can be told, from which the rest is made."""
