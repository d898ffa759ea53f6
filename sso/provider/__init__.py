"""Calls to the provider: discovery, token, userinfo, at most two at once."""
