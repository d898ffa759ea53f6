"""The Table API in the OpenAPI document, as each caller sees it."""
