"""Requests of any kind: none causes a server error.

described      from the OpenAPI document of nine callers, valid and invalid
tables         conversations with the Table API: every column type, queries, conditions, keys, odd bodies
sockets        bytes on a connection to the running product: damaged, cut off, slow, several in one
administrator  schemathesis with all its checks and the administrator's document against the running product
"""
