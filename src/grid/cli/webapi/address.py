"""The address of a gateway, from the command line, GRID_GATEWAY or node.url, and its trusted certificates."""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from twisted.web.client import BrowserLikePolicyForHTTPS

from grid.errors import ConfigError
from grid.values import frozen

MAX_URL = 2048

MAX_FILE = 4 * 2**20

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.S)


@frozen(kw_only=True)
class GatewayAddress:
    """base: the URL with a trailing slash, to which paths of the web API are appended.

    ca_file: None for the system's.
    """

    base: str
    host: str
    is_secure: bool
    ca_file: str | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether the traffic stays on this machine."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def shown(self) -> str:
        """Its name in messages."""
        return self.base.rstrip("/")


def parse_address(text: str, where: str, ca_file: str | None = None) -> GatewayAddress:
    """Parse the URL of a gateway; ConfigError, which calls it `where`, if it is invalid.

    A URL with a user or password is refused: anybody who can list processes would see it, and a gateway needs none.
    """
    text = text.strip()
    if not text.isascii() or not text.isprintable() or " " in text or len(text) > MAX_URL:
        raise ConfigError(f"{where}: not a URL; expected http://HOST:PORT/ or https://HOST:PORT/")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(f"{where}: not a URL: its host or port is invalid") from None
    if "@" in parts.netloc:
        raise ConfigError(f"{where}: a gateway's URL must not contain a user or a password")
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise ConfigError(f"{where}: a gateway's URL is http://HOST:PORT/ or https://HOST:PORT/")
    if parts.query or parts.fragment or "?" in text or "#" in text or "URI" in parts.path or "\\" in text:
        raise ConfigError(f"{where}: a gateway's URL ends with its port or a path, and contains no capability")
    if ca_file is not None and parts.scheme != "https":
        raise ConfigError(f"{where}: a certificate file works only with https")
    shown_host = f"[{host}]" if ":" in host else host
    port_text = "" if port is None else f":{port}"
    path = parts.path.strip("/")
    base = f"{parts.scheme}://{shown_host}{port_text}/{path + '/' if path else ''}"
    return GatewayAddress(base=base, host=host, is_secure=parts.scheme == "https", ca_file=ca_file)


def tls_policy(address: GatewayAddress) -> Any:  # noqa: ANN401 - an IPolicyForHTTPS
    """The TLS policy for an Agent, which checks host names and IP addresses.

    ConfigError if the file has no certificate.
    """
    if address.ca_file is None:
        return BrowserLikePolicyForHTTPS()
    from twisted.internet.ssl import Certificate, trustRootFromCertificates

    try:
        with open(address.ca_file, "rb") as file:
            data = file.read(MAX_FILE)
    except OSError as problem:
        raise ConfigError(f"{address.ca_file}: {problem.strerror}") from None
    try:
        found = [Certificate.loadPEM(match[0]) for match in _CERTIFICATE.finditer(data)]
    except Exception:
        raise ConfigError(f"{address.ca_file}: it contains an invalid certificate") from None
    if not found:
        raise ConfigError(f"{address.ca_file}: it contains no certificate in PEM")
    return BrowserLikePolicyForHTTPS(trustRootFromCertificates(found))
