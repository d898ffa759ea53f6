"""The access matrix: each route, method and kind of caller, asked of the service and held against `matrix.txt`."""
