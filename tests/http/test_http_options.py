"""Addresses, tokens and who may ask."""

import argparse
import socket

import pytest

from ofa_tui.errors import OfaError
from ofa_tui.http.errors import ApiError
from ofa_tui.http.guard import check_client, check_json
from ofa_tui.http.options import TOKEN_VARIABLE, HttpOptions, add_arguments, from_arguments, parse_address
from ofa_tui.http.server import Endpoint


def given(*arguments: str) -> HttpOptions | None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return from_arguments(parser.parse_args(arguments))


def test_addresses():
    assert parse_address("127.0.0.1:80") == ("127.0.0.1", 80)
    assert parse_address("[::1]:80") == ("::1", 80)
    assert parse_address(":80") == parse_address("80") == ("127.0.0.1", 80)
    for wrong in ("", "host", "host:", "host:x", "::1:80", "1.2.3.4:65536", "1.2.3.4:-1", "h:²", "h:" + "9" * 5000):
        with pytest.raises(OfaError, match="not an address"):
            parse_address(wrong)


def test_loopback_is_the_default_and_the_environment_may_bring_the_token(monkeypatch):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert given() is None
    assert given("--http") == HttpOptions("127.0.0.1", 8000)
    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    assert given("--http") == HttpOptions("127.0.0.1", 8000, "secret")
    assert given("--http", ":0", "--http-token", "other") == HttpOptions("127.0.0.1", 0, "other")
    assert "secret" not in repr(given("--http"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--http-token", "x"), "needs --http"),
        (("--http", "--http-token", ""), "empty"),
        (("--http", "--http-token", "two words"), "without spaces"),
        (("--http", "--http-token", "Schlüssel"), "ASCII"),
    ],
)
def test_tokens_that_cannot_be(monkeypatch, arguments, words):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    with pytest.raises(OfaError, match=words):
        given(*arguments)


def test_without_the_packages_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("ofa_tui.http.options.find_spec", lambda name: None if name == "uvicorn" else True)
    with pytest.raises(OfaError, match=r"--http needs uvicorn; install with: .* install.* uvicorn$"):
        given("--http")


def test_what_others_can_reach_needs_a_token():
    """Decided by the address that a name stands for."""
    with pytest.raises(OfaError, match=TOKEN_VARIABLE):
        Endpoint(HttpOptions("0.0.0.0", 0))
    with pytest.raises(OfaError, match=TOKEN_VARIABLE):
        HttpOptions("somewhere", 0).check_address("10.0.0.1")
    HttpOptions("somewhere", 0, "secret").check_address("10.0.0.1")
    HttpOptions("localhost", 0).check_address("127.0.0.1")


def test_an_address_that_is_taken_or_not_ours_is_a_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OfaError, match="already in use"):
            Endpoint(HttpOptions("127.0.0.1", taken.getsockname()[1]))
    with pytest.raises(OfaError, match="no address of this machine"):
        Endpoint(HttpOptions("a" * 70, 0))


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "secret", "Bearer sécret"]
)
def test_only_the_token_opens(header):
    with pytest.raises(ApiError) as refused:
        check_client({"authorization": header, "host": "127.0.0.1"}, "secret")
    assert (refused.value.status, refused.value.code) == (401, "invalid_api_key")
    check_client({"authorization": "bearer secret", "host": "anything"}, "secret")


def test_a_page_of_another_site_does_not_get_through_a_browser():
    for host in ("127.0.0.1:8000", "localhost:8000", "[::1]:8000", "[::1]", "LOCALHOST"):
        check_client({"host": host}, "")
    for host in ("", "evil.example", "evil.example:8000", "127.0.0.1.evil.example", "10.0.0.1", "[::2]"):
        with pytest.raises(ApiError) as refused:
            check_client({"host": host}, "")
        assert refused.value.status == 403
    check_json({"content-type": "application/json; charset=utf-8"})
    for kind in ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; x=application/json"):
        with pytest.raises(ApiError) as refused:
            check_json({"content-type": kind})
        assert refused.value.status == 415
