"""Creates the product tables in the catalogue, the shipped tables and rules, and the demo records."""
