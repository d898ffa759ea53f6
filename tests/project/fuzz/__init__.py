"""Fuzz tests: no request causes a server error.

described      generated from the OpenAPI documents of nine callers, valid and invalid
tables         sequences of Table API requests: every column type, queries, conditions, keys, malformed bodies
sockets        bytes on a connection to the running product: damaged, cut off, slow, several in one
administrator  schemathesis with all its checks and the administrator's document against the running product
"""
