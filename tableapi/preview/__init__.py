"""Shows to administrators what another user can read and do, and why. Reads only."""
