"""The product as it is measured: its own settings, with the addresses that it is compared with."""
