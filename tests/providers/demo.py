"""`./run demo-idp`: runs the certified provider of the tests for evaluation. Nothing is stored."""

import argparse
import os
import signal
import sys
from urllib.parse import urlsplit

from config import env
from config.runtime.data_folder import DataFolder
from tests.providers.real import RealProvider, client_registration, public_registration
from tests.support.programs import MissingProgram

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
SERVICE_FOUND = "(The service runs from this data folder.)"
SERVICE_NOT_FOUND = "(No service runs from this data folder. If your service uses another port, set SVC_PORT here too.)"
LOGIN_NOTES = {
    "anna": "no account yet; has the roles itil and surveyor",
    "ben": "no account yet; claims the role admin, which no provider can grant",
    "demo.agent": "with demo data, has an account that is matched by email",
}


def running_url(environment: env.Environment) -> str | None:
    """The URL of the running service with the same data folder; an explicit SVC_PORT takes precedence."""
    url = DataFolder(environment.data_dir).running_url()
    is_other_service = url is not None and "SVC_PORT" in os.environ and urlsplit(url).port != environment.port
    return None if is_other_service else url


def callback_urls(environment: env.Environment) -> list[str]:
    """The redirect URIs under which users may open the service; the first is the one to enter."""
    product_url = (running_url(environment) or environment.base_url or environment.local_url).rstrip("/")
    urls = [product_url, product_url.replace("//127.0.0.1", "//localhost")]
    return [url + CALLBACK_PATH for url in dict.fromkeys(urls)]


def format_instructions(url: str, callback_url: str, *, is_running: bool = False) -> str:
    """The text that explains how to configure and try the provider."""
    fields = {
        "Name": "Demo",
        "Provider URL": url,
        "Realm": REALM,
        "Client ID": "servicebase",
        "Client secret": SECRET,
        "Select": "Active, Enable user creation, Enable role mapping",
    }
    prefilled_fields = {
        "Authorization type": "Authorization Code Flow",
        "User field": "Email",
        "Redirect URI": callback_url,
        "Scope": "openid",
    }
    product_url = callback_url.removesuffix(CALLBACK_PATH)
    lines = [
        "",
        f"  A demo identity provider is running for the service at {product_url}",
        f"  {SERVICE_FOUND if is_running else SERVICE_NOT_FOUND}",
        "",
        "  In the administration, open Single sign-on → OIDC settings → Create OIDC setting, and enter:",
        *(f"    {name:<20}{value}" for name, value in fields.items()),
        "  These fields are already filled in:",
        *(f"    {name:<20}{value}" for name, value in prefilled_fields.items()),
        "    (PKCE without a secret: Client ID servicebase-pkce)",
        "",
        f"  Then open the service in a private window and sign in as one of these users, password {PASSWORD}:",
        *(f"    {login:<20}{note}" for login, note in LOGIN_NOTES.items()),
        "",
        "  Stop with Ctrl-C.",
        "",
    ]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./run demo-idp", description="Run an identity provider for evaluation.")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    port = parser.parse_args(arguments).port
    # Background processes of a shell script start with SIGINT ignored. This one must stop on it, as `./run` does.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        environment = env.current()
        if not environment.allows_http_idp:
            raise env.ConfigurationError(
                "This provider uses http, which the service refuses with the current settings. Outside production, set "
                "SVC_ALLOW_HTTP_IDP=1 for the service and for this command."
            )
        urls = callback_urls(environment)
        people = [{"password": PASSWORD, **person} for person in PEOPLE]
        realms = [{"name": REALM, "path": f"/realm/{REALM}"}]
        provider = RealProvider(port=port, realms=realms, people=people, shows_people=True).start()
    except (env.ConfigurationError, MissingProgram, RuntimeError) as error:
        print(f"servicebase: {error}", file=sys.stderr)
        if "address already in use" in str(error):
            print(f"Port {port} is taken. Choose another one: ./run demo-idp --port {port + 1}", file=sys.stderr)
        return 1
    try:
        redirect_options = {
            "redirect_uris": urls,
            "post_logout_redirect_uris": [logout_url(url) for url in urls],
        }
        provider.register(
            client_registration(urls[0], client_secret=SECRET, **redirect_options),
            public_registration(urls[0], **redirect_options),
        )
        print(format_instructions(provider.url, urls[0], is_running=running_url(environment) is not None), flush=True)
        return provider.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        provider.stop()


def logout_url(callback_url: str) -> str:
    return callback_url.replace(CALLBACK_PATH, "/sso/logout/")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
