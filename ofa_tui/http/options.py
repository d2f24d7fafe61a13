"""`--http` and `--http-token`: where to listen, and who may ask."""

from __future__ import annotations

import argparse
import ipaddress
import os
from dataclasses import dataclass, field
from importlib.util import find_spec

from ofa_tui.errors import OfaError
from ofa_tui.installation import how_to_add

LOOPBACK = "127.0.0.1"
PORT = 8000
TOKEN_VARIABLE = "OFA_TUI_HTTP_TOKEN"
PACKAGES = ("starlette", "uvicorn")


@dataclass(frozen=True)
class HttpOptions:
    host: str
    """A name or an address, IPv6 without brackets."""
    port: int
    """0: any that is free."""
    token: str = field(default="", repr=False)
    """What a client has to bring; empty: nothing."""

    def check_address(self, address: str) -> None:
        """Raises OfaError where `address`, which `host` stands for, is open to others and no token is asked for."""
        if not self.token and not is_loopback(address):
            raise OfaError(f"--http {self.host} can be reached from other machines; set a token with {TOKEN_VARIABLE} "
                           f"or --http-token, or listen on {LOOPBACK}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    http = parser.add_argument_group("HTTP")
    http.add_argument("--http", nargs="?", const=f"{LOOPBACK}:{PORT}", metavar="HOST:PORT",
                      help=f"complete text for OpenAI clients, too (without an address: {LOOPBACK}:{PORT})")
    http.add_argument("--http-token", metavar="TOKEN",
                      help=f"what a client has to bring; {TOKEN_VARIABLE} says it without showing it to `ps`")


def from_arguments(args: argparse.Namespace) -> HttpOptions | None:
    """None without --http. Raises OfaError for what cannot be, or where the packages are missing."""
    if args.http is None:
        if args.http_token is not None:
            raise OfaError("--http-token needs --http: it is for clients of the HTTP endpoint")
        return None
    host, port = parse_address(args.http)
    options = HttpOptions(host, port, _token(args.http_token))
    missing = [package for package in PACKAGES if find_spec(package) is None]
    if missing:
        raise OfaError(f"--http needs {' and '.join(missing)}; install with: {how_to_add(*missing)}")
    return options


def parse_address(text: str) -> tuple[str, int]:
    """`127.0.0.1:8000`, `[::1]:8000`, `name:8000`, or `:8000` and `8000` for loopback. Raises OfaError."""
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise OfaError(f"--http {text!r} is not an address; write an IPv6 one in brackets, as in [::1]:{PORT}")
    if not (port.isascii() and port.isdigit()) or int(port[:6]) > 65535:
        raise OfaError(f"--http {text!r} is not an address; write for example --http {LOOPBACK}:{PORT}")
    return host or LOOPBACK, int(port)


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches it: a numeric address, or `localhost`."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() == "localhost"


def _token(given: str | None) -> str:
    token = os.environ.get(TOKEN_VARIABLE, "") if given is None else given
    source = TOKEN_VARIABLE if given is None else "--http-token"
    if given == "":
        raise OfaError("--http-token is empty; give a token, or leave the option out")
    if any(not "!" <= character <= "~" for character in token):
        raise OfaError(f"{source} has characters that a header cannot carry; use ASCII without spaces")
    return token
