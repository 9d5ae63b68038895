"""Trust roots for https gateways: the certificates of this machine, or those of a file."""

from __future__ import annotations

import re
from typing import Any

from twisted.web.client import BrowserLikePolicyForHTTPS

from grid.cli.webapi.address import GatewayAddress
from grid.errors import ConfigError

MAX_FILE = 4 * 2**20

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.S)


def tls_policy(address: GatewayAddress) -> Any:  # noqa: ANN401 - an IPolicyForHTTPS
    """The policy for an Agent; host names are checked, and IP addresses too. ConfigError for a file that has none."""
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
        raise ConfigError(f"{address.ca_file}: a certificate in it cannot be read") from None
    if not found:
        raise ConfigError(f"{address.ca_file}: there is no certificate in PEM in it")
    return BrowserLikePolicyForHTTPS(trustRootFromCertificates(found))
