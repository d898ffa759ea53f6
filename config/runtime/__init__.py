"""The runtime behind `manage.py up`: embedded servers and the supervisor. Standard library only, to stay small."""
