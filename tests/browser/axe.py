"""Checks the accessibility of a page with axe-core, which is in the folder `axe_core`."""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from playwright.sync_api import Page

AXE_FILE = Path(__file__).parent / "axe_core" / "axe.min.js"
AXE_SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"

# Animations are finished first, because axe would measure the contrast of a half transparent text.
RUN_AXE = """async ([selector, rules]) => {
  await Promise.allSettled(document.getAnimations().map((animation) => animation.finished));
  const onlyRules = rules.length ? { runOnly: rules } : {};
  const { violations } = await axe.run(selector ?? document, { resultTypes: ["violations"], ...onlyRules });
  return violations.flatMap(({ id, help, nodes }) => nodes.map(({ target, failureSummary }) =>
    `${id} (${help}): ${target.join(" ")}\\n  ${failureSummary.replaceAll("\\n", "\\n  ")}`));
}"""


@cache
def axe_source() -> str:
    content = AXE_FILE.read_bytes()
    assert hashlib.sha256(content).hexdigest() == AXE_SHA256, "axe.min.js was changed"
    return content.decode()


def assert_no_findings(page: Page, selector: str | None = None, *, rules: Sequence[str] = ()) -> None:
    """Fails with every finding of axe-core on the page, or in the part that the CSS selector names.

    With `rules`, only these are checked.

    Scripts of `evaluate` are not subject to the Content-Security-Policy of the page.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe_source())
    findings = page.evaluate(RUN_AXE, [selector, list(rules)])
    assert not findings, f"{page.url}\n" + "\n".join(findings)
