"""Processes loaded documents until their version is published."""
