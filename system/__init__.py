"""What every area shares: records, errors, the HTTP shape, properties, logs, guards."""
