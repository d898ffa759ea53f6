"""Start, sign-in and account pages; login and profile endpoints."""
