"""Parses a node's configuration, grid.cfg or tahoe.cfg, into frozen settings. Pure.

The keys are those of 1.20 and a few more. An invalid value raises ConfigError, which names the file, section and key
but never the value (it may be a secret). So does an unknown key, since it may be misspelled. [spec cli 6;
storage-server 10.1]
"""

from __future__ import annotations

import configparser
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar

from grid.errors import ConfigError
from grid.limits import MAX_SEGMENT_SIZE, MAX_SHARES
from grid.node.known_keys import unknown_keys, without_own_keys
from grid.node.quantities import (
    parse_boolean,
    parse_day,
    parse_duration,
    parse_endpoint,
    parse_hint,
    parse_hosts,
    parse_proxies,
    parse_size,
    parse_whole,
)
from grid.values import field, frozen

T = TypeVar("T")
Durability = Literal["full", "none"]
LogFormat = Literal["text", "json"]
Transport = Literal["auto", "foolscap", "http"]

DEFAULT_SEGMENT_SIZE = 2**20
MAX_DRAIN_S = 86400


@frozen(kw_only=True)
class ExpirySettings:
    """When leases expire. override_s: replaces the duration in each lease.

    cutoff: Unix time. [spec storage-server 10.2]
    """

    enabled: bool = False
    mode: Literal["age", "cutoff-date"] = "age"
    override_s: int | None = None
    cutoff: int | None = None
    immutable: bool = True
    mutable: bool = True


@frozen(kw_only=True)
class StorageSettings:
    """A node's storage server. directory: as written, relative to the node's. reserved_space: bytes.

    plaintext_reads: endpoint description at which shares are also served unencrypted, for reading only; None: nowhere.
    """

    enabled: bool = True
    readonly: bool = False
    anonymous: bool = True
    reserved_space: int = 0
    directory: str = "storage"
    durability: Durability = "full"
    force_foolscap: bool = False
    plaintext_reads: str | None = None
    grid_management: bool = False
    expire: ExpirySettings = ExpirySettings()


@frozen(kw_only=True)
class ClientSettings:
    """How a node puts files and reaches servers.

    preferred: ids of servers to ask first. plaintext_reads: read without encryption from servers that offer it. pack:
    copies and backups put small files into packs. convergent: equal immutable files get equal keys. introducer_furl:
    the legacy key, if set.
    """

    needed: int = 3
    happy: int = 7
    total: int = 10
    max_segment_size: int = DEFAULT_SEGMENT_SIZE
    preferred: frozenset[str] = frozenset()
    transport: Transport = "auto"
    plaintext_reads: bool = False
    mutable_format: Literal["SDMF", "MDMF"] = "SDMF"
    pack: bool = False
    convergent: bool = True
    introducer_furl: str | None = field(default=None, repr=False)


@frozen(kw_only=True)
class S3Settings:
    """The S3 door. port: endpoint to listen on, None for no door. domain: its subdomains are buckets; "" for none.

    certificate, private_key: PEM files, as written, for TLS. pack: put small objects into packs; None: as the client does.
    """

    port: str | None = None
    domain: str = ""
    certificate: str | None = None
    private_key: str | None = None
    pack: bool | None = None


@frozen(kw_only=True)
class SftpSettings:
    """The SFTP door. port: endpoint to listen on, None for no door. The others: files, as written."""

    port: str | None = None
    public_key: str = ""
    private_key: str = ""
    accounts: str = ""


@frozen(kw_only=True)
class NodeSettings:
    """Everything a configuration file says.

    tub_port: endpoint descriptions; () if not given, None if disabled. tub_location: hints, including `AUTO`; None if
    disabled. web_hosts: more names of the web gateway; `*` for any. web_proxies: addresses and networks. web_drain_s: seconds its requests may outlast it.
    tcp_handler, reveal_address: what opens TCP connections, and if directly. grid_managers: names, texts of their keys.
    """

    nickname: str = "<unspecified>"
    tub_port: tuple[str, ...] | None = ()
    tub_location: tuple[str, ...] | None = ("AUTO",)
    web_port: str | None = None
    web_static: str = "public_html"
    web_hosts: tuple[str, ...] = ()
    web_drain_s: int = 60
    web_read_only: bool = False
    web_proxies: tuple[str, ...] = ()
    log_format: LogFormat = "text"
    temporary_directory: str = "tmp"
    keepalive_s: int | None = None
    disconnect_s: int | None = None
    tcp_handler: str = "tcp"
    reveal_address: bool = True
    grid_managers: tuple[tuple[str, str], ...] = ()
    certificates: tuple[tuple[str, str], ...] = ()
    client: ClientSettings = ClientSettings()
    storage: StorageSettings = StorageSettings()
    s3: S3Settings = S3Settings()
    sftp: SftpSettings = SftpSettings()


@frozen
class _Section:
    """One section of one file: values by key, and errors that name their place."""

    file_name: str
    name: str
    values: Mapping[str, str]

    def error(self, key: str, problem: str) -> ConfigError:
        return ConfigError(f"{self.file_name}: section [{self.name}], key {key}: {problem}")

    def read(self, key: str, parse: Callable[[str], T], default: T) -> T:
        """The parsed value of the key; the default if it is missing or empty."""
        text = self.values.get(key, "")
        if not text.strip():
            return default
        try:
            return parse(text)
        except ValueError as problem:
            raise self.error(key, str(problem)) from None

    def text(self, key: str) -> str | None:
        """The stripped value; None if it is missing or empty."""
        return self.values.get(key, "").strip() or None


def parse_config(text: str, file_name: str) -> NodeSettings:
    """Parse the text of a configuration file; ConfigError, which names file_name, if it is invalid."""
    sections = read_sections(text, file_name)
    _refuse_unknown(sections, file_name)
    return _settings(sections, file_name)


def agree(texts: Sequence[str]) -> bool:
    """Whether all configuration files agree, apart from Grid's own keys; False if any is invalid."""
    try:
        found = [_settings(without_own_keys(read_sections(text, "")), "") for text in texts]
    except ConfigError:
        return False
    return all(settings == found[0] for settings in found)


def _settings(sections: Mapping[str, Mapping[str, str]], file_name: str) -> NodeSettings:
    def section(name: str) -> _Section:
        return _Section(file_name, name, sections.get(name, {}))

    node = section("node")
    port, location = _read_listening(node)
    return NodeSettings(
        nickname=node.text("nickname") or "<unspecified>",
        tub_port=port,
        tub_location=location,
        web_port=node.text("web.port"),
        web_static=node.text("web.static") or "public_html",
        web_hosts=node.read("web.allowed_hosts", parse_hosts, ()),
        web_drain_s=node.read("web.drain_timeout", lambda text: parse_whole(text, most=MAX_DRAIN_S), 60),
        web_read_only=node.read("web.read_only", parse_boolean, False),
        web_proxies=node.read("web.trusted_proxies", parse_proxies, ()),
        log_format="json" if _read_choice(node, "log_format", ("text", "json"), "text") == "json" else "text",
        temporary_directory=node.text("tempdir") or "tmp",
        keepalive_s=node.read("timeout.keepalive", parse_whole, None),
        disconnect_s=node.read("timeout.disconnect", parse_whole, None),
        tcp_handler=_read_choice(section("connections"), "tcp", ("tcp", "tor", "disabled"), "tcp"),
        reveal_address=node.read("reveal-ip-address", parse_boolean, True),
        grid_managers=tuple(sections.get("grid_managers", {}).items()),
        certificates=tuple(sections.get("grid_manager_certificates", {}).items()),
        client=_read_client(section("client")),
        storage=_read_storage(section("storage")),
        s3=_read_s3(section("s3")),
        sftp=_read_sftp(section("sftpd")),
    )


def read_sections(text: str, file_name: str) -> dict[str, dict[str, str]]:
    """The keys and values of each section; ConfigError if the text has none."""
    parser = configparser.ConfigParser(strict=False, comment_prefixes=("#", ";"), default_section="\0none")
    try:
        parser.read_string(text.removeprefix("\ufeff"), file_name)
        return {name: dict(parser.items(name)) for name in parser.sections()}
    except configparser.InterpolationError as problem:
        place = f"{file_name}: section [{problem.section}], key {problem.option}"
        raise ConfigError(f"{place}: write %% for a percent sign") from None
    except configparser.MissingSectionHeaderError as problem:
        raise ConfigError(f"{file_name}: line {problem.lineno}: expected a [section] line first") from None
    except configparser.ParsingError as problem:
        lines = ", ".join(str(line) for line, _ in problem.errors) or "1"
        raise ConfigError(f"{file_name}: line {lines}: expected [section] or key = value") from None
    except configparser.Error:
        raise ConfigError(f"{file_name}: expected [section] lines and key = value lines") from None


def _refuse_unknown(sections: Mapping[str, Mapping[str, str]], file_name: str) -> None:
    """Raise ConfigError that names the first unknown section or key."""
    for name, values in sections.items():
        unknown = unknown_keys(name, values)
        if unknown is None:
            raise ConfigError(f"{file_name}: section [{name}]: there is no such section; correct or remove it")
        for key in unknown:
            raise ConfigError(f"{file_name}: section [{name}], key {key}: there is no such key; correct or remove it")


def _read_choice(section: _Section, key: str, choices: tuple[str, ...], default: str) -> str:
    value = section.text(key)
    if value is None:
        return default
    for choice in choices:
        if value.lower() == choice.lower():
            return choice
    raise section.error(key, f"expected one of {', '.join(choices)}")


def _read_list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _read_listening(node: _Section) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Where to listen and what to announce: both disabled, or neither. [spec wire 1]"""
    ports = _read_list(node.values.get("tub.port", ""))
    hints = _read_list(node.values.get("tub.location", "AUTO"))
    if "tub.port" in node.values and not ports:
        raise node.error("tub.port", "must not be empty; write disabled, or remove the line")
    if not hints:
        raise node.error("tub.location", "must not be empty; write disabled, or remove the line")
    for port in ports:
        if port in ("0", "tcp:0") or port.startswith("tcp:0:"):
            raise node.error("tub.port", "port 0 would change at every start; choose a port")
    if (ports == ("disabled",)) != (hints == ("disabled",)):
        raise node.error("tub.port", "tub.port and tub.location must both be disabled, or neither")
    if ports == ("disabled",):
        return None, None
    none: tuple[str, ...] = ()
    endpoints = node.read("tub.port", lambda text: tuple(map(parse_endpoint, _read_list(text))), none)
    return endpoints, node.read("tub.location", lambda text: tuple(map(parse_hint, _read_list(text))), hints)


def _read_client(section: _Section) -> ClientSettings:
    def share_count(text: str) -> int:
        return parse_whole(text, least=1, most=MAX_SHARES)

    needed = section.read("shares.needed", share_count, 3)
    happy = section.read("shares.happy", share_count, 7)
    total = section.read("shares.total", share_count, 10)
    if needed > total:
        raise section.error("shares.needed", f"{needed} is more than shares.total, {total}")
    if happy > total:
        raise section.error("shares.happy", f"{happy} is more than shares.total, {total}: no file could be stored")
    furl = section.text("introducer.furl")
    if furl == "None":
        raise section.error("introducer.furl", "None is no longer allowed; remove the line")
    mutable_format = _read_choice(section, "mutable.format", ("SDMF", "MDMF"), "SDMF")
    return ClientSettings(
        needed=needed,
        happy=happy,
        total=total,
        max_segment_size=section.read(
            "shares._max_immutable_segment_size_for_testing",
            lambda text: parse_whole(text, least=1, most=MAX_SEGMENT_SIZE),
            DEFAULT_SEGMENT_SIZE,
        ),
        preferred=frozenset(_read_list(section.values.get("peers.preferred", ""))),
        transport=_read_transport(section),
        plaintext_reads=section.read("plaintext_reads", parse_boolean, False),
        mutable_format="MDMF" if mutable_format == "MDMF" else "SDMF",
        pack=section.read("pack", parse_boolean, False),
        convergent=_read_choice(section, "convergence", ("secret", "none"), "secret") == "secret",
        introducer_furl=furl,
    )


def _read_transport(section: _Section) -> Transport:
    """The value of `transport`, or the equivalent of 1.20's `force_foolscap`."""
    transport = _read_choice(section, "transport", ("auto", "foolscap", "http"), "auto")
    if section.read("force_foolscap", parse_boolean, False):
        if transport == "http":
            raise section.error("transport", "cannot be http while force_foolscap is true")
        return "foolscap"
    return "http" if transport == "http" else "foolscap" if transport == "foolscap" else "auto"


def _read_storage(section: _Section) -> StorageSettings:
    return StorageSettings(
        enabled=section.read("enabled", parse_boolean, True),
        readonly=section.read("readonly", parse_boolean, False),
        anonymous=section.read("anonymous", parse_boolean, True),
        reserved_space=section.read("reserved_space", parse_size, 0),
        directory=section.text("storage_dir") or "storage",
        durability="none" if _read_choice(section, "durability", ("full", "none"), "full") == "none" else "full",
        force_foolscap=section.read("force_foolscap", parse_boolean, False),
        plaintext_reads=section.text("plaintext_reads"),
        grid_management=section.read("grid_management", parse_boolean, False),
        expire=_read_expiry(section),
    )


def _read_expiry(section: _Section) -> ExpirySettings:
    enabled = section.read("expire.enabled", parse_boolean, False)
    mode = _read_choice(section, "expire.mode", ("age", "cutoff-date"), "age")
    cutoff = section.read("expire.cutoff_date", parse_day, None)
    if enabled and section.text("expire.mode") is None:
        raise section.error("expire.mode", "must be age or cutoff-date when expire.enabled is true")
    if enabled and mode == "cutoff-date" and cutoff is None:
        raise section.error("expire.cutoff_date", "must be given when expire.mode is cutoff-date")
    return ExpirySettings(
        enabled=enabled,
        mode="cutoff-date" if mode == "cutoff-date" else "age",
        override_s=section.read("expire.override_lease_duration", parse_duration, None),
        cutoff=cutoff,
        immutable=section.read("expire.immutable", parse_boolean, True),
        mutable=section.read("expire.mutable", parse_boolean, True),
    )


def _read_s3(section: _Section) -> S3Settings:
    none: tuple[str, ...] = ()
    domain = section.read("domain", parse_hosts, none)
    if len(domain) > 1:
        raise section.error("domain", "one name only")
    certificate, private_key = section.text("certificate"), section.text("private_key")
    if private_key is not None and certificate is None:
        raise section.error("private_key", "takes a certificate as well")
    port, pack = section.text("port"), section.read("pack", parse_boolean, None)
    return S3Settings(port=port, domain="".join(domain), certificate=certificate, private_key=private_key, pack=pack)


def _read_sftp(section: _Section) -> SftpSettings:
    if not section.read("enabled", parse_boolean, False):
        return SftpSettings()
    files = {}
    for key in ("host_pubkey_file", "host_privkey_file", "accounts.file"):
        file = section.text(key)
        if file is None:
            raise section.error(key, "must name a file while enabled is true; docs/sftp.md says how to make it")
        files[key] = file
    return SftpSettings(
        port=section.text("port") or "tcp:8022",
        public_key=files["host_pubkey_file"],
        private_key=files["host_privkey_file"],
        accounts=files["accounts.file"],
    )


def require_plain_tcp(settings: NodeSettings) -> None:
    """Raise ConfigError if the configuration demands that the node hide its address, which direct connections would
    not.
    """
    if settings.tcp_handler == "tor":
        raise ConfigError("section [connections], key tcp: Tor is not supported by this version; nothing is sent")
    if not settings.reveal_address and settings.tcp_handler != "disabled":
        raise ConfigError("section [node], key reveal-IP-address: cannot be false while [connections] tcp is tcp")
