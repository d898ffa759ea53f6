"""Beat with a leader, and what it sends."""
