"""What every installation gets: product tables, shipped tables and rules, demo records."""
