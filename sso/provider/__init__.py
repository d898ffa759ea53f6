"""Requests to the provider, at most two at a time: discovery, tokens and userinfo."""
