"""Logs, metrics, health probes and heartbeats."""
