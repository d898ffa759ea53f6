"""In charge of running a script to check it: once for each save, and before the save takes its turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sso.scripts import mapping_script

if TYPE_CHECKING:
    from sso.models import OidcSetting


class ScriptRuns:
    """How the scripts of one record fared. A save holds a lock that every other saver waits for: none of them must wait
    for a process, so what was run before is not run again."""

    def __init__(self) -> None:
        self._refusals: dict[str, str] = {}

    def check(self, given: str) -> str:
        if refusal := self.refusal(given):
            raise ValueError(refusal)
        return unified(given)

    def refusal(self, given: str) -> str:
        """Why this can be no script; nothing when it can be one."""
        source = unified(given)
        if source not in self._refusals:
            self._refusals[source] = run(source)
        return self._refusals[source]

    def look_ahead(self, stored: OidcSetting | None, changing: Mapping[str, Any]) -> None:
        """Run what the check of this change will ask for. Should somebody store another script meanwhile, that one is
        run when its turn has come."""
        script = changing.get("script", stored.script if stored else None)
        is_checked = stored is None or script != stored.script or (changing.get("active") and not stored.active)
        if isinstance(script, str) and is_checked:
            self.refusal(script)


def unified(source: str) -> str:
    """The line ends of a form are no change."""
    return source.replace("\r\n", "\n")


def run(source: str) -> str:
    if source in ("", mapping_script.DEFAULT):  # the field itself says that it is empty
        return ""
    try:
        mapping_script.check(source)
    except mapping_script.ScriptRefused as error:
        return str(error)
    return ""
