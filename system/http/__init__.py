"""Middleware, error responses, request bodies, ETags."""
