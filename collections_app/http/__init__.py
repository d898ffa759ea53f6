"""The eight endpoints: parameters and uploads in, JSON out."""
