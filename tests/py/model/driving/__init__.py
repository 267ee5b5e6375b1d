"""Plays operations to the engine and to the reference model, and compares."""
