"""Evaluates access rules and shows each caller only what they may see. Pure."""
