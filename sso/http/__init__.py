"""To the provider and back, and signing out at both ends."""
