"""Accounts of object stores, from the environment and from files of the AWS tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.errors import ConfigError
from grid.transfer.object_accounts import az_account, gs_account, s3_account, store_arguments


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory with two profiles."""
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(
        "[default]\naws_access_key_id = D\naws_secret_access_key = d%s\n[lab]\naws_access_key_id=L\naws_secret_access_key=l\n"
    )
    (folder / "config").write_text(
        "[default]\nregion = eu-1\n[profile lab]\nregion = eu-2\nendpoint_url = http://lab\n[lab]\nregion = wrong\n"
    )
    return tmp_path


def test_account_when_nothing_is_said_is_the_default_profile(home: Path) -> None:
    assert s3_account({"HOME": str(home)}) == {"access_key_id": "D", "secret_access_key": "d%s", "region": "eu-1"}


@pytest.mark.parametrize("variable", ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"])
def test_account_when_a_profile_is_named_is_that_one(home: Path, variable: str) -> None:
    assert s3_account({"HOME": str(home), variable: "lab"}) == {
        "access_key_id": "L",
        "secret_access_key": "l",
        "region": "eu-2",
        "endpoint": "http://lab",
    }


@pytest.mark.parametrize(
    ("profile", "found"),
    [("", {"region": "eu-1"}), ("lab", {"region": "eu-2", "endpoint": "http://lab"}), ("role", {"region": "eu-3"})],
)
def test_account_when_the_environment_has_keys_takes_only_the_place_from_the_profile(
    home: Path, profile: str, found: dict[str, str]
) -> None:
    """As botocore 1.44 does: only an explicit --profile goes before keys in the environment."""
    with (home / ".aws" / "config").open("a") as file:
        file.write("[profile role]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = lab\nregion = eu-3\n")
    environment = {"HOME": str(home), "AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "e"}
    assert s3_account(environment | {"AWS_PROFILE": profile}) == found
    assert s3_account({"HOME": "/nowhere", "AWS_ACCESS_KEY_ID": "E"}) == {"region": "us-east-1"}


@pytest.mark.parametrize(
    "kind",
    ["role_arn = arn:aws:iam::1:role/x\nsource_profile = lab", "sso_session = s", "sso_start_url = https://x",
     "credential_process = /bin/keys"],
)  # fmt: skip
def test_profile_of_another_kind_is_refused_with_the_command_that_fetches_its_keys(home: Path, kind: str) -> None:
    with (home / ".aws" / "config").open("a") as file:
        file.write(f"[profile my other]\n{kind}\naws_access_key_id = K\naws_secret_access_key = hidden\n")
    with pytest.raises(ConfigError, match=r"export-credentials --profile 'my other'") as caught:
        s3_account({"HOME": str(home), "AWS_PROFILE": "my other"})
    assert kind.split(maxsplit=1)[0] in str(caught.value) and "hidden" not in str(caught.value)


def test_profile_with_keys_in_the_credentials_file_needs_no_process(home: Path) -> None:
    with (home / ".aws" / "config").open("a") as file:
        file.write("[profile both]\ncredential_process = /bin/keys\n")
    with (home / ".aws" / "credentials").open("a") as file:
        file.write("[both]\naws_access_key_id = B\naws_secret_access_key = b\n")
    assert s3_account({"HOME": str(home), "AWS_PROFILE": "both"})["access_key_id"] == "B"


def test_account_when_the_environment_names_region_and_endpoint_takes_them(home: Path) -> None:
    found = s3_account(
        {
            "HOME": str(home),
            "AWS_PROFILE": "lab",
            "AWS_REGION": "here",
            "AWS_DEFAULT_REGION": "there",
            "AWS_ENDPOINT_URL": "http://all",
            "AWS_ENDPOINT_URL_S3": "http://s3",
        }
    )
    assert (found["region"], found["endpoint"]) == ("here", "http://s3")


def test_account_when_files_are_elsewhere_reads_them_there(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("[default]\naws_session_token = T\n")
    found = s3_account({"HOME": str(home), "AWS_SHARED_CREDENTIALS_FILE": str(other), "AWS_CONFIG_FILE": "/nowhere"})
    assert found == {"session_token": "T", "region": "us-east-1"}


def test_profile_when_missing_is_named_and_when_broken_tells_no_line(home: Path) -> None:
    with pytest.raises(ConfigError, match="'gone'"):
        s3_account({"HOME": str(home), "AWS_PROFILE": "gone"})
    (home / ".aws" / "credentials").write_text("aws_secret_access_key = hidden\n")
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        s3_account({"HOME": str(home)})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_account_of_other_stores_is_left_to_their_client(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "here")
    assert set(store_arguments(scheme)) == {"client_options", "retry_config"}


KEY = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, {}),
        ({"AZURE_STORAGE_ACCOUNT": "lab", "AZURE_STORAGE_KEY": KEY}, {"account_name": "lab", "account_key": KEY}),
        ({"AZURE_STORAGE_ACCOUNT": "lab", "AZURE_STORAGE_ACCOUNT_NAME": "other"}, {}),
        ({"AZURE_STORAGE_KEY": KEY, "AZURE_STORAGE_ACCESS_KEY": "other"}, {}),
        ({"AZURE_STORAGE_SERVICE_ENDPOINT": "http://lab"}, {"endpoint": "http://lab"}),
    ],
)
def test_account_of_azure_when_variables_of_its_command_name_it_is_that_one(
    environment: dict[str, str], found: dict[str, str]
) -> None:
    assert az_account(environment) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("UseDevelopmentStorage=true", {"use_emulator": True}),
        (
            f"DefaultEndpointsProtocol=https;AccountName=lab;AccountKey={KEY};EndpointSuffix=core.chinacloudapi.cn",
            {"account_name": "lab", "endpoint": "https://lab.blob.core.chinacloudapi.cn", "account_key": KEY, "credential_type": "access_key"},
        ),
        (
            f" accountname = lab ; accountkey = {KEY} ; BlobEndpoint = http://127.0.0.1:10000/lab/ ;",
            {"account_name": "lab", "endpoint": "http://127.0.0.1:10000/lab", "account_key": KEY, "credential_type": "access_key"},
        ),
        (
            "BlobEndpoint=https://lab.blob.core.windows.net/;SharedAccessSignature=sv=2021&sig=a%3D",
            {"account_name": "lab", "endpoint": "https://lab.blob.core.windows.net", "sas_key": "sv=2021&sig=a%3D", "credential_type": "sas_token"},
        ),
        (
            "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1",
            {"account_name": "devstoreaccount1", "endpoint": "http://127.0.0.1:10000/devstoreaccount1"},
        ),
        ("AccountName=lab", {"account_name": "lab", "endpoint": "https://lab.blob.core.windows.net"}),
    ],
    ids=["emulator", "key", "spaces", "signature", "endpoint", "name"],
)  # fmt: skip
def test_connection_string_of_azure_goes_before_variables(text: str, found: dict[str, str]) -> None:
    others = {"AZURE_STORAGE_ACCOUNT": "other", "AZURE_STORAGE_KEY": "other"}
    assert az_account({**others, "AZURE_STORAGE_CONNECTION_STRING": text}) == found


def test_connection_string_that_names_no_account_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="AZURE_STORAGE_CONNECTION_STRING names neither") as caught:
        az_account({"AZURE_STORAGE_CONNECTION_STRING": f"AccountKey={KEY}"})
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:4443", "http://127.0.0.1:4443", "http://127.0.0.1:4443/", "http://127.0.0.1:4443/storage/v1/"]
)
def test_emulator_of_google_is_asked_without_credentials(host: str, tmp_path: Path) -> None:
    (tmp_path / "application_default_credentials.json").write_text("{}")
    found = gs_account({"STORAGE_EMULATOR_HOST": host, "CLOUDSDK_CONFIG": str(tmp_path)})
    assert found.pop("credential_provider")() == {"token": "", "expires_at": None}
    assert found == {"base_url": "http://127.0.0.1:4443"}


def test_credentials_in_a_chosen_folder_of_gcloud_are_taken_unless_others_are_named(tmp_path: Path) -> None:
    chosen = {"CLOUDSDK_CONFIG": str(tmp_path)}
    assert gs_account(chosen) == {}
    path = tmp_path / "application_default_credentials.json"
    path.write_text("{}")
    assert gs_account(chosen) == {"application_credentials": str(path)}
    assert gs_account({**chosen, "GOOGLE_APPLICATION_CREDENTIALS": "/other.json"}) == {}
