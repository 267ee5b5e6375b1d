"""Requests and answers in MessagePack and JSON, their errors and log lines; neither server nor client."""
