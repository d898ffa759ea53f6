"""The runtime behind `manage.py up`: embedded servers and the supervisor. Standard library only: it stays small."""
