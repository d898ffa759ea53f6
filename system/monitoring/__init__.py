"""Logs, metrics and health probes."""
