"""How dates and times are written for people."""
