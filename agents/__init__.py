"""MCP: tools with which agents read and write records and search documents."""
