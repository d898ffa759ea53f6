"""The form of the designer: its sections, saving them together, what a change costs, and the preview."""
