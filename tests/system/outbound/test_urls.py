"""URLs of a provider are checked when they are saved."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from system.outbound import OutboundRefused, Policy, check_url

PRODUCTION = Policy()
DEVELOPMENT = Policy(allow_http=True)

REFUSED_URLS = [
    # A23
    ("http://idp.example.com/", "scheme"),
    ("file:///etc/passwd", "scheme"),
    ("ftp://idp.example.com/", "scheme"),
    ("//idp.example.com/", "scheme"),
    ("idp.example.com/realms/a", "scheme"),
    ("", "scheme"),
    ("https://admin@idp.example.com/", "userinfo"),
    ("https://admin:secret@idp.example.com/", "userinfo"),
    ("https://idp.example.com@evil.example/", "userinfo"),
    ("https://@idp.example.com/", "userinfo"),
    ("https://idp.example.com:8443/", "port"),
    ("https://idp.example.com:80/", "port"),
    ("https://idp.example.com:0/", "port"),
    ("https://idp.example.com:65979/", "port"),  # 443 after a 16-bit overflow
    ("https://idp.example.com:/", "host"),
    ("https://idp.example.com:443:443/", "host"),
    ("https://idp.example.com:x/", "host"),
    ("https://idp.example.com/#", "fragment"),
    ("https://idp.example.com/#a", "fragment"),
    ("https://idp.example.com/?", "query"),
    ("https://idp.example.com?a=b", "query"),
    # Host tricks
    ("https://", "host"),
    ("https:///realms/a", "host"),
    ("https:idp.example.com", "host"),
    ("https://:443/", "host"),
    ("https://.example.com/", "host"),
    ("https://idp..example.com/", "host"),
    ("https://idp.example.com./", "host"),
    ("https://-idp.example.com/", "host"),
    ("https://%31%32%37.0.0.1/", "host"),
    ("https://idp.example.com,evil.example/", "host"),
    (f"https://{'a' * 64}.example.com/", "host"),
    (f"https://{'a.' * 126}ab/", "host"),
    ("https://[::1/", "host"),
    ("https://[]/", "host"),
    ("https://[::1]evil.example/", "host"),
    ("https://[idp.example.com]/", "host"),
    ("https://[fe80::1%25eth0]/", "host"),
    ("https://::ffff:169.254.169.254/", "host"),
    # A24: numbers in disguise
    ("https://2130706433/", "host"),
    ("https://0x7f000001/", "host"),
    ("https://0X7F000001/", "host"),
    ("https://127.1/", "host"),
    ("https://127.0.1/", "host"),
    ("https://0177.0.0.1/", "host"),
    ("https://127.0.0.0x1/", "host"),
    ("https://127.0.0.1./", "host"),
    ("https://1.2.3.4.5/", "host"),
    ("https://256.1.1.1/", "host"),
    ("https://①②⑦.⓪.⓪.①/", "characters"),
    ("https://１２７.0.0.1/", "characters"),  # noqa: RUF001
    ("https://127。0。0。1/", "characters"),
    ("https://bücher.example/", "characters"),
    # A24: literal addresses, in every form
    ("https://169.254.169.254/latest/meta-data/", "address"),
    ("https://127.0.0.1/", "address"),
    ("https://0.0.0.0/", "address"),
    ("https://192.0.0.192/", "address"),
    ("https://100.100.100.200/", "address"),
    ("https://[::1]/", "address"),
    ("https://[::]/", "address"),
    ("https://[::ffff:169.254.169.254]/", "address"),
    ("https://[::ffff:a9fe:a9fe]/", "address"),
    ("https://[64:ff9b::a9fe:a9fe]/", "address"),
    ("https://[2002:a9fe:a9fe::]/", "address"),
    ("https://[::169.254.169.254]/", "address"),
    ("https://[fd00:ec2::254]/", "address"),
    ("https://localhost/", "address"),
    ("https://LOCALHOST/", "address"),
    ("https://idp.localhost/", "address"),
    # Characters
    ("https://idp.example.com/a b", "characters"),
    (" https://idp.example.com/", "characters"),
    ("https://idp.example.com/\n", "characters"),
    ("https://idp.exa\tmple.com/", "characters"),
    ("https://idp.example.com/\x00", "characters"),
    ("https://idp.example.com/\x7f", "characters"),
    ("https://idp.example.com\\@evil.example/", "characters"),
    ("https://idp.example.com/%0", "characters"),
    ("https://idp.example.com/%zz", "characters"),
    ("https://idp.example.com/" + "a" * 2000, "too_long"),
]


@pytest.mark.parametrize(("raw_url", "code"), REFUSED_URLS)
def test_forbidden_url_is_refused_with_its_code(raw_url: str, code: str) -> None:
    with pytest.raises(OutboundRefused) as exc_info:
        check_url(raw_url, PRODUCTION)
    assert exc_info.value.code == code


@pytest.mark.parametrize(
    ("raw_url", "url"),
    [
        ("https://idp.example.com", "https://idp.example.com"),
        ("https://idp.example.com/realms/a", "https://idp.example.com/realms/a"),
        ("HTTPS://IdP.Example.COM:443/Realms/A", "https://idp.example.com/Realms/A"),
        ("https://keycloak/auth", "https://keycloak/auth"),
        ("https://my_idp.internal/", "https://my_idp.internal/"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
        ("https://10.1.2.3/", "https://10.1.2.3/"),  # A27
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://[2A00:0:0::1]/", "https://[2a00::1]/"),
        ("https://idp.example.com/a%20b;c=d/@e", "https://idp.example.com/a%20b;c=d/@e"),
        ("https://7.idp.example.com/", "https://7.idp.example.com/"),
    ],
)
def test_valid_url_is_normalized(raw_url: str, url: str) -> None:
    assert str(check_url(raw_url, PRODUCTION)) == url


def test_url_length_is_limited_to_2000_characters() -> None:
    raw_url = "https://idp.example.com/".ljust(2000, "a")
    assert str(check_url(raw_url, PRODUCTION)) == raw_url
    with pytest.raises(OutboundRefused):
        check_url(raw_url + "a", PRODUCTION)


def test_private_address_is_refused_if_private_networks_are_turned_off() -> None:  # A27
    with pytest.raises(OutboundRefused) as exc_info:
        check_url("https://10.1.2.3/", Policy(allow_private=False))
    assert exc_info.value.code == "address"
    assert "private" in exc_info.value.message


@pytest.mark.parametrize(
    ("raw_url", "port"),
    [
        ("http://idp.example.com/", 80),
        ("http://localhost:8080/", 8080),
        ("http://127.0.0.1:8080/", 8080),
        ("https://[::1]:8443/", 8443),
        ("https://idp.example.com:8443/", 8443),
    ],
)
def test_development_switch_allows_http_any_port_and_loopback(raw_url: str, port: int) -> None:
    checked_url = check_url(raw_url, DEVELOPMENT)
    assert (checked_url.port, str(checked_url)) == (port, raw_url)


@pytest.mark.parametrize(
    "raw_url",
    [
        "http://169.254.169.254/",
        "http://[::ffff:169.254.169.254]/",
        "http://0.0.0.0/",
        "http://127.1/",
        "ftp://idp.example.com/",
        "http://idp.example.com:0/",
        "http://idp.example.com:65536/",
    ],
)
def test_development_switch_allows_nothing_else(raw_url: str) -> None:
    with pytest.raises(OutboundRefused):
        check_url(raw_url, DEVELOPMENT)


def test_refusal_names_the_allowed_schemes() -> None:
    for policy, message in ((PRODUCTION, "with https://."), (DEVELOPMENT, "with https:// or http://.")):
        with pytest.raises(OutboundRefused) as exc_info:
            check_url("ftp://idp.example.com/", policy)
        assert str(exc_info.value.message).endswith(message)


def test_query_string_is_kept_if_allowed() -> None:
    checked_url = check_url("https://idp.example.com?p=policy", PRODUCTION, allow_query=True)
    assert (checked_url.target, str(checked_url)) == ("/?p=policy", "https://idp.example.com?p=policy")


def test_refusal_never_repeats_a_password() -> None:
    with pytest.raises(OutboundRefused) as exc_info:
        check_url("https://admin:hunter2@idp.example.com/", PRODUCTION)
    assert "hunter2" not in repr(exc_info.value)


url_pieces = st.sampled_from(
    ["https:", "//", "@", ":", "[", "]", "::1", "127", "0x7f", ".", "%41", "a", "/", "?", "#", "443"]
)


@settings(deadline=None)
@given(st.lists(url_pieces | st.characters(), max_size=12).map("".join).map(lambda tail: f"https://{tail}"))
@example("https://a@[::1]:443")
def test_normalization_is_idempotent(raw_url: str) -> None:
    try:
        checked_url = check_url(raw_url, PRODUCTION)
    except OutboundRefused:
        return
    assert check_url(str(checked_url), PRODUCTION) == checked_url
    assert checked_url.port == 443
    assert checked_url.host.isascii()
    assert not set(checked_url.host) & set("@/\\?#%[] ")


def test_any_port_can_be_allowed_without_http() -> None:
    policy = Policy(allow_any_port=True)
    assert str(check_url("https://receiver.example.com:8443/", policy)) == "https://receiver.example.com:8443/"
    for url in ("http://receiver.example.com:8080/", "https://127.0.0.1:8443/", "https://receiver.example.com:0/"):
        with pytest.raises(OutboundRefused):
            check_url(url, policy)
