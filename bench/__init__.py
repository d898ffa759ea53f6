"""Measurements. Each module has a `main`; figures are ratios within one run wherever the machine matters."""
