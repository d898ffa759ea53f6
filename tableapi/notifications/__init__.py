"""Creates notifications from the change log, lists them and sends them by email."""
