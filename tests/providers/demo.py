"""`./run demo-idp`: the certified provider of the tests, for evaluation. Nothing is stored."""

import argparse
import os
import signal
import sys

from config import env
from config.runtime.data_folder import DataFolder
from tests.providers.real import RealProvider, client_registration, public_registration
from tests.support.programs import ProgramMissing

DEFAULT_PORT = 8400
REALM = "demo"
CALLBACK_PATH = "/sso/callback/"
SECRET = "demo-client-secret"
PASSWORD = "demo"
PEOPLE = (
    {"sub": "demo-anna", "login": "anna", "email": "anna@example.com", "given_name": "Anna", "family_name": "Ahlgren",
     "name": "Anna Ahlgren", "roles": ["itil", "surveyor"]},
    {"sub": "demo-ben", "login": "ben", "email": "ben@example.com", "given_name": "Ben", "family_name": "Brandt",
     "name": "Ben Brandt", "roles": ["admin"]},
    {"sub": "demo-agent", "login": "demo.agent", "email": "agent@example.com", "given_name": "Ada",
     "family_name": "Agent", "name": "Ada Agent", "roles": ["itil"]},
)  # fmt: skip
INSTALLATION_FOUND = "(it runs from this data folder)."
INSTALLATION_NOT_FOUND = "(none runs from this data folder; if yours is at another port, start this with its SVC_PORT)."
REALM_NOTES = {
    "anna": "new here; roles itil and surveyor",
    "ben": "new here; claims the role admin, which no provider can give",
    "demo.agent": "has an account already, found by email",
}


def running_url(environment: env.Environment) -> str | None:
    """Where the service of the same data folder is opened, if it runs; who names a port means that one."""
    return None if "SVC_PORT" in os.environ else DataFolder(environment.data_dir).running_url()


def callback_urls(environment: env.Environment) -> list[str]:
    """Where the product may be opened; the first is the one to type."""
    product = (running_url(environment) or environment.base_url or environment.local_url).rstrip("/")
    names = [product, product.replace("//127.0.0.1", "//localhost")]
    return [name + CALLBACK_PATH for name in dict.fromkeys(names)]


def instructions(url: str, callback: str, *, is_running: bool = False) -> str:
    """What to type where."""
    fields = {
        "Name": "Demo",
        "URL IdP": url,
        "Realm": REALM,
        "Client ID": "servicebase",
        "Client secret": SECRET,
        "Tick": "Active, Enable user creation, Enable role mapping",
    }
    preset = {
        "Authorization type": "Authorization Code Flow",
        "User field": "Email",
        "Redirect URI": callback,
        "Scope": "openid",
    }
    product = callback.removesuffix(CALLBACK_PATH)
    lines = [
        "",
        f"  A demo identity provider is running, for the service at {product}",
        f"  {INSTALLATION_FOUND if is_running else INSTALLATION_NOT_FOUND}",
        "",
        "  In the administration, Single sign-on, OIDC settings, Add:",
        *(f"    {name:<20}{value}" for name, value in fields.items()),
        "  The rest stands there already:",
        *(f"    {name:<20}{value}" for name, value in preset.items()),
        "    (PKCE without a secret: Client ID servicebase-pkce)",
        "",
        f"  Then open the service in a private window and sign in as one of these, password {PASSWORD}:",
        *(f"    {login:<20}{note}" for login, note in REALM_NOTES.items()),
        "",
        "  Stop with Ctrl-C.",
        "",
    ]
    return "\n".join(lines)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./run demo-idp", description="An identity provider for a first look.")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    port = parser.parse_args(words).port
    # A script's shell has what it starts with & ignore this; it must end by it all the same, as `./run` does.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        environment = env.current()
        if not environment.allows_http_idp:
            raise env.ConfigurationError(
                "This provider speaks http, and the product would refuse it here. Outside production, set "
                "SVC_ALLOW_HTTP_IDP=1 for the product and for this command."
            )
        result = callback_urls(environment)
        people = [{"password": PASSWORD, **person} for person in PEOPLE]
        realms = [{"name": REALM, "path": f"/realm/{REALM}"}]
        provider = RealProvider(port=port, realms=realms, people=people, shows_people=True).start()
    except (env.ConfigurationError, ProgramMissing, RuntimeError) as error:
        print(f"servicebase: {error}", file=sys.stderr)
        return 1
    try:
        redirect_options = {
            "redirect_uris": result,
            "post_logout_redirect_uris": [signed_out_url(callback) for callback in result],
        }
        provider.register(
            client_registration(result[0], client_secret=SECRET, **redirect_options),
            public_registration(result[0], **redirect_options),
        )
        print(instructions(provider.url, result[0], is_running=running_url(environment) is not None), flush=True)
        return provider.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        provider.stop()


def signed_out_url(callback: str) -> str:
    return callback.replace(CALLBACK_PATH, "/sso/logout/")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
