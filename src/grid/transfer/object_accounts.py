"""Accounts of object stores, from environment variables and profiles as the AWS tools use them.

It reads the user's configuration files, and never puts their contents into a message.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from grid.errors import ConfigError

_KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "region": "region",
    "endpoint_url": "endpoint",
}

_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def store_arguments(scheme: str) -> dict[str, Any]:
    """Arguments of obstore for a store, besides its bucket; ConfigError."""
    arguments: dict[str, Any] = {
        # A large object arrives as one answer, so limit its silence rather than its duration.
        "client_options": {"timeout": timedelta(days=7), "read_timeout": timedelta(seconds=60), "allow_http": True},
        # The transfer engine retries by itself, and reports that.
        "retry_config": {"max_retries": 2, "retry_timeout": timedelta(seconds=20)},
    }
    if scheme == "s3":
        arguments |= s3_account(os.environ)
    return arguments


def s3_account(environment: Mapping[str, str]) -> dict[str, Any]:
    """Keys, region and endpoint for S3, from the environment first and then the profile; ConfigError."""
    found: dict[str, Any] = {}
    profile = environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE")
    if profile or "AWS_ACCESS_KEY_ID" not in environment:
        found |= _profile(environment, profile or "default", is_required=profile is not None)
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


def _profile(environment: Mapping[str, str], name: str, *, is_required: bool) -> dict[str, str]:
    home = Path(environment.get("HOME", "~")).expanduser()
    credentials = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws" / "credentials")
    config = Path(environment.get("AWS_CONFIG_FILE") or home / ".aws" / "config")
    found: dict[str, str] = {}
    was_found = False
    for path, section in ((config, name if name == "default" else f"profile {name}"), (credentials, name)):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            raise ConfigError(f"{path}: cannot be read as a configuration file of the aws tools") from None
        if parser.has_section(section):
            was_found = True
            found |= {key: parser.get(section, text) for text, key in _KEYS.items() if parser.has_option(section, text)}
    if is_required and not was_found:
        raise ConfigError(f"there is no profile {name!r} in {config} or {credentials}")
    return found
