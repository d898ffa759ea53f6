"""Logs, metrics, health, heartbeats."""
