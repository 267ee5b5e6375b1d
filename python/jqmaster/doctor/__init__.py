"""What is wrong with a namespace and its Redis, and what to do about it."""
