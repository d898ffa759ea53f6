"""The pages about single sign-on contain every refusal code with its status, the URLs and the defaults."""

import re

from django.urls import reverse

from accounts import roles
from config.env import ROOT, Environment
from sso.models import OidcSetting
from sso.provider import discovery
from sso.provisioning import profile
from sso.refusals import Refusal
from sso.scripts import mapping_script
from tests.providers import demo

PAGE_NAMES = ("how-to/connect-a-provider", "reference/single-sign-on", "reference/sign-in-errors")
PAGE = "\n".join((ROOT / f"docs/{name}.md").read_text() for name in PAGE_NAMES)
REFUSAL_ROWS = re.findall(r"^\| (\d{3}) \| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)


def test_every_code_is_documented_with_status_and_advice():
    assert [(code, int(status)) for status, code, _, _ in REFUSAL_ROWS] == [
        (refusal.code, refusal.status) for refusal in Refusal
    ]
    assert all(cause.endswith(".") for _, _, cause, _ in REFUSAL_ROWS)


def test_page_and_sign_in_log_give_the_same_advice():
    advice_by_code = {code: advice for _, code, _, advice in REFUSAL_ROWS}
    assert {code: plain_text(advice) for code, advice in advice_by_code.items()} == {
        refusal.code: refusal.advice for refusal in Refusal
    }


def plain_text(advice: str) -> str:
    """The advice as the administration shows it: labels in quotation marks instead of italics."""
    return re.sub(r"\*([^*]+)\*", r"“\1”", advice).replace("`", "")


def test_every_named_code_exists():
    used_names = set(re.findall(r"[(`]`?([a-z]+(?:_[a-z]+)+)`", PAGE))
    columns = {field.name for field in OidcSetting._meta.get_fields()} | set(mapping_script.SCRIPT_COLUMNS)
    other_names = {
        "sso_admin", "collection_admin", "id_token", "login_hint", "target_link_uri", "at_hash", "form_post",
    }  # fmt: skip

    assert used_names - {refusal.code for refusal in Refusal} - columns - other_names == set()


def test_urls_match_the_routes():
    for name in ("sso:start", "sso:callback", "sso:logout", "sso:backchannel_logout"):
        assert f"`{reverse(name)}`" in PAGE
    assert f"`https://service.example.com{reverse('sso:callback')}`" in PAGE


def test_discovery_urls_are_documented_in_order():
    documented_paths = [path.removeprefix("U").replace("R", "{}") for path in re.findall(r"`(/[\w./]*R[\w./]*)`", PAGE)]
    code_paths = [url.removeprefix("https://u") for url in discovery.issuer_candidates("https://u", "R")]

    assert documented_paths == [path.replace("R", "{}") for path in code_paths if path]


def test_documented_script_runs():
    match = re.search(r"```js\n(.*?)```", PAGE, re.DOTALL)
    assert match is not None
    mapping_script.check_script(match[1])
    claims = {"email": "ann@example.com", "given_name": "Ann", "family_name": "Ahlgren"}

    assert mapping_script.map_claims(match[1], claims) == {
        "email": "ann@example.com",
        "login": "ann@example.com",
        "first_name": "Ann",
        "last_name": "Ahlgren",
    }
    for column in mapping_script.SCRIPT_COLUMNS:
        assert f"`{column}`" in PAGE


def test_roles_and_claims_match_the_code():
    assert all(f"`{path}`" in PAGE for path in profile.ROLE_CLAIMS)
    protected_roles = {name for name, (_, is_grantable) in roles.SHIPPED_ROLES.items() if not is_grantable}
    match = re.search(r"never granted by a provider; by default these are (.+?)\. ", " ".join(PAGE.split()))

    assert match is not None
    assert set(re.findall(r"`(\w+)`", match[1])) == protected_roles
    assert protected_roles >= {roles.ADMIN, roles.SSO_ADMIN, roles.COLLECTION_ADMIN}


def test_demo_provider_prints_the_form_labels():
    instructions = demo.format_instructions("http://127.0.0.1:8400", demo.callback_urls(Environment())[0])
    field_labels = {str(field.verbose_name).lower() for field in OidcSetting._meta.fields}

    printed_labels = re.findall(r"^    ([A-Z][\w ]+?)  +\S", instructions, re.MULTILINE)
    assert {name.lower() for name in printed_labels if name != "Select"} <= field_labels
    assert all(name.strip().lower() in field_labels for name in re.search(r"Select +(.+)", instructions)[1].split(","))  # type: ignore[index]
    assert instructions.count("http://127.0.0.1:8000/sso/callback/") == 1
