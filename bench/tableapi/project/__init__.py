"""The measured product: its settings, with additional addresses for the comparison."""
