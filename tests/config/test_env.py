"""Environment variables: types and error messages."""

from pathlib import Path

import pytest

from config import env
from config.env import ConfigurationError

INVALID_VALUES = {
    "SVC_PORT": ["0", "65536", "80a", "-1", "٣", "8 0"],
    "SVC_WEB_PROCESSES": ["0", "65", "two"],
    "SVC_ENV": ["prod", "Production"],
    "SVC_DEMO": ["2", "maybe"],
    "SVC_BASE_URL": ["service.example.com", "ftp://x", "https://x/path", "https://x?y=1", "https://"],
    "SVC_TRUSTED_PROXIES": ["10.0.0.0/99", "proxy.example.com"],
    "SVC_TLS_CERT": ["/nowhere/tls.crt"],
    "DATABASE_URL": ["mysql://x/y", "db.example.com"],
    "SVC_POSTGRES_SIZES": ["shared_buffers", "work_mem=4 MB", "max_connections=9", "work_mem=-1MB"],
    "REDIS_URL": ["http://x", "localhost:6379"],
    "SVC_SECRET_KEYS": [],
    "SVC_EMBEDDING_PROVIDER": ["remote", "OpenAI"],
    "SVC_EMBEDDING_DIMENSIONS": ["0", "3901", "many"],
    "SVC_EMBEDDING_BATCH": ["0", "2049"],
    "SVC_EMBEDDING_CONCURRENCY": ["0", "65"],
    "OPENAI_BASE_URL": ["127.0.0.1:11434", "ftp://x/v1", "http:///v1", "http://x/v1?key=1"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in INVALID_VALUES.items() for value in values]
)
def test_error_of_an_invalid_value_states_the_expected_form(name: str, value: str):
    with pytest.raises(ConfigurationError, match=rf"^{name} must .*\.$"):
        env.read({name: value})


def test_invalid_secret_is_not_repeated():
    with pytest.raises(ConfigurationError) as exc_info:
        env.read({"DATABASE_URL": "mysql://user:canary@host/name"})

    assert "canary" not in str(exc_info.value)


def test_embedding_provider_needs_a_model_and_a_url_or_a_key():
    variables = {"SVC_EMBEDDING_PROVIDER": "openai"}
    with pytest.raises(ConfigurationError, match="SVC_EMBEDDING_MODEL"):
        env.read(variables)
    with pytest.raises(ConfigurationError, match="OPENAI_BASE_URL or OPENAI_API_KEY"):
        env.read({**variables, "SVC_EMBEDDING_MODEL": "m"})

    environment = env.read({**variables, "SVC_EMBEDDING_MODEL": "m", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1/"})
    assert (environment.openai_base_url, environment.embedding_batch) == ("http://127.0.0.1:1/v1", 64)


def test_password_in_the_providers_url_is_refused_and_not_repeated():
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY") as exc_info:
        env.read({"OPENAI_BASE_URL": "http://me:canary@127.0.0.1/v1"})

    assert "canary" not in str(exc_info.value)


def test_postgresql_sizes_may_be_separated_by_commas_and_spaces():
    environment = env.read({"SVC_POSTGRES_SIZES": "shared_buffers=2GB, max_wal_size=512MB"})

    assert environment.postgres_sizes == ("shared_buffers=2GB", "max_wal_size=512MB")


def test_empty_value_means_not_set():
    assert env.read({"SVC_PORT": " ", "DATABASE_URL": ""}) == env.Environment()


def test_secret_can_be_read_from_a_file(tmp_path: Path):
    (tmp_path / "key").write_text("from the file\n")

    assert env.read({"SECRET_KEY_FILE": str(tmp_path / "key")}).secret_key == "from the file"


def test_secret_file_must_be_readable_and_exclusive(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="The file set in SECRET_KEY_FILE cannot be read"):
        env.read({"SECRET_KEY_FILE": str(tmp_path / "missing")})
    with pytest.raises(ConfigurationError, match="not both"):
        env.read({"SECRET_KEY_FILE": str(tmp_path), "SECRET_KEY": "x"})


def test_only_secrets_can_be_read_from_a_file(tmp_path: Path):
    (tmp_path / "port").write_text("9")

    assert env.read({"SVC_PORT_FILE": str(tmp_path / "port")}).port == 8000


def test_certificate_and_key_require_each_other(tmp_path: Path):
    (tmp_path / "tls.crt").write_text("x")

    with pytest.raises(ConfigurationError, match="together"):
        env.read({"SVC_TLS_CERT": str(tmp_path / "tls.crt")})


def test_demo_data_is_only_for_development_by_default():
    assert env.read({}).wants_demo
    assert not env.read({"SVC_ENV": "production"}).wants_demo
    assert env.read({"SVC_ENV": "production", "SVC_DEMO": "1"}).wants_demo


@pytest.mark.parametrize(
    ("variables", "is_allowed"),
    [
        ({}, True),
        ({"SVC_HOST": "::1"}, True),
        ({"SVC_ALLOW_HTTP_IDP": "0"}, False),
        ({"SVC_HOST": "0.0.0.0"}, False),
        ({"SVC_HOST": "0.0.0.0", "SVC_ALLOW_HTTP_IDP": "1"}, True),
        ({"SVC_BASE_URL": "https://service.example.com"}, False),
        ({"SVC_TRUSTED_PROXIES": "127.0.0.1"}, False),
        ({"SVC_ENV": "production"}, False),
    ],
)
def test_http_providers_are_only_for_development(variables: dict[str, str], is_allowed: bool):
    assert env.read(variables).allows_http_idp is is_allowed


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({}, "http://127.0.0.1:8000"),
        ({"SVC_HOST": "0.0.0.0", "SVC_PORT": "81"}, "http://127.0.0.1:81"),
        ({"SVC_HOST": "::1"}, "http://[::1]:8000"),
    ],
)
def test_printed_url_is_reachable(variables: dict[str, str], url: str):
    assert env.read(variables).local_url == url


class TestDotenv:
    def test_quotes_and_comments_are_parsed(self, tmp_path: Path):
        path = tmp_path / ".env"
        path.write_text("# a comment\n\nSVC_PORT=9000\nSVC_HOST = '0.0.0.0'\nSECRET_KEY=\"a=b # c\"\n")

        assert env.read_dotenv(path) == {"SVC_PORT": "9000", "SVC_HOST": "0.0.0.0", "SECRET_KEY": "a=b # c"}

    def test_invalid_line_is_named_by_its_number(self, tmp_path: Path):
        path = tmp_path / ".env"
        path.write_text("SVC_PORT=9000\nnonsense\n")

        with pytest.raises(ConfigurationError, match=r"Line 2 of \.env"):
            env.read_dotenv(path)

    def test_environment_takes_precedence_over_the_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        (tmp_path / ".env").write_text("SVC_PORT=9000\nSVC_HOST=0.0.0.0\n")
        monkeypatch.setattr(env, "ROOT", tmp_path)
        monkeypatch.setenv("SVC_PORT", "9001")

        assert (env.current().port, env.current().host) == (9001, "0.0.0.0")
