"""What a browser calls itself, in the words of people: a guess to know one's session by, nothing to decide by."""

import re

# The first that is found counts: most of them also call themselves by the names that come after theirs.
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
)
PROGRAM = re.compile(r"[A-Za-z][\w .-]{0,40}")


def readable(user_agent: str) -> str:
    """
    >>> readable("Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36 Edg/126.0")
    'Edge on Windows'
    >>> readable("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"), readable("curl/8.5.0")
    ('Firefox on Linux', 'curl')
    """
    browser = next((name for mark, name in BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    if browser:
        return f"{browser} on {system}" if system else browser
    program = PROGRAM.match(user_agent)
    is_named = program is not None and not user_agent.startswith("Mozilla/")
    return program.group().strip() if program is not None and is_named else "Unknown browser"
