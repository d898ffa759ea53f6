"""From an accepted load to a published version."""
