"""Tests of outbound calls, against a hostile server on loopback."""
