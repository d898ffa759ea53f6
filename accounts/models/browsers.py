"""Names the browser and system of a User-Agent header: a guess to recognize a session by, not to decide by."""

import re

# The first match counts: most browsers also send the names that follow theirs here.
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
OPERATING_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
)
PROGRAM_PATTERN = re.compile(r"[A-Za-z][\w .-]{0,40}")


def describe_user_agent(user_agent: str) -> str:
    """
    >>> describe_user_agent("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/126.0 Safari/537.36 Edg/126.0")
    'Edge on Windows'
    >>> describe_user_agent("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
    'Firefox on Linux'
    >>> describe_user_agent("curl/8.5.0")
    'curl'
    """
    browser = next((name for mark, name in BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in OPERATING_SYSTEMS if mark in user_agent), "")
    if browser:
        return f"{browser} on {system}" if system else browser
    program = PROGRAM_PATTERN.match(user_agent)
    is_program = program is not None and not user_agent.startswith("Mozilla/")
    return program.group().strip() if program is not None and is_program else "Unknown browser"
