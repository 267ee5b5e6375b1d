"""Runs functions for jobs: sources of jobs, slots, heartbeats, endings."""
