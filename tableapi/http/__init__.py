"""Parameters and body in, status and headers out: the one place that knows Django REST framework."""
