"""Writes the list as a command for curl. Pure."""

import shlex
from collections.abc import Mapping


def curl_command(url: str, parameters: Mapping[str, str]) -> str:
    r"""The command, for POSIX shells; the key comes from the variable TOKEN.

    >>> print(curl_command("https://a.example/rest/v1/table/task", {"sysparm_query": "name=it's"}))
    curl -G https://a.example/rest/v1/table/task \
      -H "Authorization: Bearer $TOKEN" \
      --data-urlencode 'sysparm_query=name=it'"'"'s'
    """
    options = [f"--data-urlencode {shlex.quote(f'{name}={value}')}" for name, value in parameters.items() if value]
    lines = [f"curl -G {shlex.quote(url)}", '-H "Authorization: Bearer $TOKEN"', *options]
    return " \\\n  ".join(lines)
