"""Accounts of object stores, from environment variables and files as the stores' own tools use them.

It reads the user's configuration files, and never puts their contents into a message. What it leaves out, obstore takes
from the environment by itself.
"""

from __future__ import annotations

import configparser
import os
import shlex
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from grid.errors import ConfigError

RETRIES = 2

_KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "region": "region",
    "endpoint_url": "endpoint",
}

_PLACE = ("region", "endpoint")
"""What of a profile holds although its keys do not."""

_OTHER_KINDS = ("role_arn", "sso_start_url", "sso_session", "login_session")
"""Settings of profiles whose keys must be asked for. They go before keys in files, as in the aws tools."""

_AZ_NAMES = {
    "account_name": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"),
    "account_key": (
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_MASTER_KEY",
        "AZURE_STORAGE_KEY",
    ),
    "endpoint": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT", "AZURE_STORAGE_SERVICE_ENDPOINT"),
}
"""Variables by what they say. The last of each is that of the command az, which obstore does not know."""

_GS_CREDENTIALS = (
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
)

_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def store_arguments(scheme: str) -> dict[str, Any]:
    """Arguments of obstore for a store, besides its bucket; ConfigError."""
    arguments: dict[str, Any] = {
        # A large object arrives as one answer, so limit its silence rather than its duration.
        "client_options": {"timeout": timedelta(days=7), "read_timeout": timedelta(seconds=60), "allow_http": True},
        # The transfer engine retries by itself, and reports that.
        "retry_config": {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=20)},
    }
    account = {"s3": s3_account, "gs": gs_account, "az": az_account}[scheme]
    return arguments | account(os.environ)


def account_place(scheme: str, arguments: Mapping[str, Any], environment: Mapping[str, str]) -> list[str]:
    """What tells stores of the same names apart, besides keys: servers and accounts. arguments: of `store_arguments`."""
    names = [*_AZ_NAMES["account_name"], *_AZ_NAMES["endpoint"], "AZURE_STORAGE_USE_EMULATOR"] if scheme == "az" else []
    found = [
        f"{name}={arguments[name]}"
        for name in ("endpoint", "base_url", "account_name", "use_emulator")
        if name in arguments
    ]
    return [*found, *(f"{name}={environment[name]}" for name in names if environment.get(name))]


def s3_account(environment: Mapping[str, str]) -> dict[str, Any]:
    """Keys, region and endpoint for S3, from the environment first and then the profile, as in the aws tools; ConfigError."""
    profile = environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE")
    has_keys = bool(environment.get("AWS_ACCESS_KEY_ID"))
    found: dict[str, Any] = dict(
        _profile(environment, profile or "default", is_required=bool(profile), needs_keys=not has_keys)
    )
    if has_keys:
        found = {key: value for key, value in found.items() if key in _PLACE}
    for variable, key in (("AWS_REGION", "region"), ("AWS_DEFAULT_REGION", "region")):
        if environment.get(variable):
            found[key] = environment[variable]
            break
    for variable in _ENDPOINT_VARIABLES:
        if environment.get(variable):
            found["endpoint"] = environment[variable]
            break
    found.setdefault("region", "us-east-1")
    return found


def gs_account(environment: Mapping[str, str]) -> dict[str, Any]:
    """The emulator that Google's libraries would use, without any credentials; or those of a chosen folder of gcloud."""
    if host := environment.get("STORAGE_EMULATOR_HOST"):
        url = (host if "://" in host else f"http://{host}").rstrip("/").removesuffix("/storage/v1")
        return {"base_url": url, "credential_provider": _no_token}
    if (folder := environment.get("CLOUDSDK_CONFIG")) and not any(map(environment.get, _GS_CREDENTIALS)):
        path = Path(folder) / "application_default_credentials.json"
        if path.exists():
            return {"application_credentials": str(path)}
    return {}


def _no_token() -> dict[str, Any]:
    return {"token": "", "expires_at": None}


def az_account(environment: Mapping[str, str]) -> dict[str, Any]:
    """Account, key and endpoint for Azure, from the connection string first and then single variables; ConfigError."""
    if text := environment.get("AZURE_STORAGE_CONNECTION_STRING"):
        return _connection(text)
    found: dict[str, Any] = {}
    for key, (*known, other) in _AZ_NAMES.items():
        if environment.get(other) and not any(map(environment.get, known)):
            found[key] = environment[other]
    return found


def _connection(text: str) -> dict[str, Any]:
    """What a connection string of Azure says."""
    pairs = {
        name.strip().lower(): value.strip()
        for name, found, value in (part.partition("=") for part in text.split(";"))
        if found
    }
    if pairs.get("usedevelopmentstorage", "").lower() == "true":
        return {"use_emulator": True}
    name, endpoint = pairs.get("accountname", ""), pairs.get("blobendpoint", "").rstrip("/")
    if not endpoint and name:
        suffix = pairs.get("endpointsuffix", "core.windows.net")
        endpoint = f"{pairs.get('defaultendpointsprotocol', 'https')}://{name}.blob.{suffix}"
    parts = urlsplit(endpoint)
    # Emulators have the account in the path.
    name = name or parts.path.strip("/") or (parts.hostname or "").partition(".")[0]
    if not name or not parts.hostname:
        raise ConfigError("AZURE_STORAGE_CONNECTION_STRING names neither an account nor a BlobEndpoint")
    account = {"account_name": name, "endpoint": endpoint}
    if key := pairs.get("accountkey"):
        return {**account, "account_key": key, "credential_type": "access_key"}
    if token := pairs.get("sharedaccesssignature"):
        return {**account, "sas_key": token, "credential_type": "sas_token"}
    return account


def _profile(environment: Mapping[str, str], name: str, *, is_required: bool, needs_keys: bool) -> dict[str, str]:
    """What the files say of a profile. is_required: whether it must exist. needs_keys: whether its keys are wanted."""
    home = Path(environment.get("HOME", "~")).expanduser()
    credentials = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws" / "credentials")
    config = Path(environment.get("AWS_CONFIG_FILE") or home / ".aws" / "config")
    found: dict[str, str] = {}
    other, was_found = "", False
    for path, section in ((config, name if name == "default" else f"profile {name}"), (credentials, name)):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            raise ConfigError(f"{path}: cannot be read as a configuration file of the aws tools") from None
        if parser.has_section(section):
            was_found = True
            here = {key: parser.get(section, text) for text, key in _KEYS.items() if parser.has_option(section, text)}
            found |= here
            other = next((kind for kind in _OTHER_KINDS if parser.has_option(section, kind)), other)
            if path == config and parser.has_option(section, "credential_process"):
                other = other or "credential_process"
            if path == credentials and other == "credential_process" and "access_key_id" in here:
                other = ""
    if is_required and not was_found:
        raise ConfigError(f"there is no profile {name!r} in {config} or {credentials}")
    if needs_keys and other:
        fetch = f'eval "$(aws configure export-credentials --profile {shlex.quote(name)} --format env)"'
        raise ConfigError(f"Grid cannot use {other} of the profile {name!r}; fetch its keys first: {fetch}")
    return found
