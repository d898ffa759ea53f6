"""The access matrix: each route, method and kind of caller, compared with `matrix.txt`."""
