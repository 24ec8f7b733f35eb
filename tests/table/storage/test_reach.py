"""Errors of a store name the bucket, the endpoint and the identity, and say what is wrong."""

import pytest

from table.storage.reach import Reach, reach_of, why_refused

MINIO = {"endpoint_url": "http://minio:9000", "region_name": "eu-west-1"}
CONNECTION = (
    "DefaultEndpointsProtocol=https;AccountName=lakes;AccountKey=c2VjcmV0;BlobEndpoint=http://azurite:10000/lakes"
)


@pytest.mark.parametrize(
    ("protocol", "options", "environment", "expected"),
    [
        ("s3", {}, {}, Reach("lake", "AWS (no region set)", "the credentials of this machine")),
        ("s3", {}, {"AWS_REGION": "eu-west-1"}, Reach("lake", "AWS eu-west-1", "the credentials of this machine")),
        ("s3", {"profile": "etl"}, {}, Reach("lake", "AWS (no region set)", "profile etl")),
        ("s3", {"anon": True}, {}, Reach("lake", "AWS (no region set)", "an anonymous client")),
        (
            "s3",
            {"key": "AKIAIOSFODNN7EXAMPLE", "secret": "hidden", "client_kwargs": MINIO},
            {"AWS_ENDPOINT_URL": "http://elsewhere"},
            Reach("lake", "http://minio:9000", "access key AKIA…MPLE"),
        ),
        (
            "s3",
            {},
            {"AWS_ACCESS_KEY_ID": "short", "AWS_ENDPOINT_URL": "http://elsewhere"},
            Reach("lake", "http://elsewhere", "access key short"),
        ),
        ("abfs", {"connection_string": CONNECTION}, {}, Reach("lake", "http://azurite:10000/lakes", "account lakes")),
        (
            "abfs",
            {},
            {"AZURE_STORAGE_ACCOUNT_NAME": "lakes", "AZURE_STORAGE_CLIENT_ID": "app"},
            Reach("lake", "https://lakes.blob.core.windows.net", "client app"),
        ),
        ("abfs", {}, {}, Reach("lake", "Azure (no account named)", "the credentials of this machine")),
        (
            "gs",
            {"token": "/etc/key.json"},
            {},
            Reach("lake", "https://storage.googleapis.com", "the key file /etc/key.json"),
        ),
        (
            "gs",
            {"token": "ya29.a-token"},
            {"STORAGE_EMULATOR_HOST": "http://gcs:4443"},
            Reach("lake", "http://gcs:4443", "the credentials of this machine"),
        ),
        ("memory", {}, {}, None),
    ],
)
def test_a_store_is_named_without_its_secrets(protocol, options, environment, expected):
    found = reach_of(protocol, "lake/folder/t", options, environment)
    assert found == expected
    for secret in ("hidden", "c2VjcmV0", "ya29"):
        assert secret not in str(found)


class AzureError(Exception):
    def __init__(self, status_code, error_code):
        super().__init__("refused")
        self.status_code, self.error_code = status_code, error_code


class GoogleError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class S3Error(Exception):
    def __init__(self, code):
        super().__init__(code)
        self.response = {"Error": {"Code": code}}


class NoCredentialsError(Exception):
    """Of botocore's name."""


def _caused_by(error):
    outer = OSError("[Errno 5] told again by the client")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (_caused_by(S3Error("NoSuchBucket")), "no such bucket"),
        (AzureError(404, "ContainerNotFound"), "no such bucket"),
        (GoogleError(404, "The specified bucket does not exist."), "no such bucket"),
        (FileNotFoundError("b/o"), "no such bucket"),
        (_caused_by(S3Error("InvalidAccessKeyId")), "denies access"),
        (PermissionError("Forbidden"), "denies access"),
        (AzureError(403, "AuthorizationFailure"), "denies access"),
        (GoogleError(401, "Anonymous caller"), "denies access"),
        (S3Error("PermanentRedirect"), "another region"),
        (NoCredentialsError("Unable to locate credentials"), "no credentials"),
        (_caused_by(ConnectionRefusedError("refused")), "nothing answers"),
    ],
)
def test_the_answer_of_a_store_is_put_in_words(error, said):
    assert said in why_refused(error)


@pytest.mark.parametrize(
    "error", [S3Error("SlowDown"), AzureError(500, "InternalError"), ValueError("bad"), TimeoutError()]
)
def test_what_may_be_anything_is_not_explained(error):
    assert why_refused(error) is None
