"""The ServiceNow dialect of the Table API: other addresses, names and forms of the same reads and writes."""
