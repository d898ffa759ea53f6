"""Refuses settings that are unsafe in production."""

from config.env import ConfigurationError, Environment

EXAMPLE_SECRETS = ("change-me", "changeme", "secret", "insecure", "example")


def is_weak(secret: str) -> bool:
    """
    >>> is_weak("change-me-please-this-is-long-enough"), is_weak("T8vYp2_qLr5xWn9cZk3mJd7hBf4gQs6aEu1oRi0t")
    (True, False)
    """
    lowered = secret.lower()
    return len(secret) < 32 or len(set(secret)) < 8 or any(word in lowered for word in EXAMPLE_SECRETS)


def refuse_unsafe_settings(environment: Environment) -> None:
    """Raise an error for the first unsafe setting."""
    if not environment.is_production:
        return
    reasons = {
        "DEBUG must be 0 in production.": environment.debug,
        "SVC_ALLOW_HTTP_IDP is only for development. Set it to 0 in production.": bool(environment.allow_http_idp),
        "ALLOWED_HOSTS must list host names in production. * is not allowed.": any(
            "*" in host for host in environment.allowed_hosts
        ),
        "SVC_BASE_URL or ALLOWED_HOSTS must be set if SVC_HOST is 0.0.0.0 or ::. Otherwise every request is refused.": (
            not (environment.base_url or environment.allowed_hosts) and environment.host in ("0.0.0.0", "::")
        ),
        "SECRET_KEY must be set to at least 32 random characters in production.": environment.secret_key is None
        or is_weak(environment.secret_key),
        "SVC_SECRET_KEYS must be set in production. Generate a key with: "
        "python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'": (
            not environment.secret_keys
        ),
        "SVC_ADMIN_PASSWORD must have at least 10 characters. Set a longer password or remove it.": (
            environment.admin_password is not None and len(environment.admin_password) < 10
        ),
        "Set DATABASE_URL and REDIS_URL in production, or set SVC_ALLOW_EMBEDDED=1.": not environment.allow_embedded
        and (environment.database_url is None or environment.redis_url is None),
    }
    for message, applies in reasons.items():
        if applies:
            raise ConfigurationError(message)
