"""The measured product: its settings, with additional URLs for the comparison."""
