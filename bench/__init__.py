"""Benchmarks. Each module has a `main`. Results that depend on the machine are ratios within one run."""
