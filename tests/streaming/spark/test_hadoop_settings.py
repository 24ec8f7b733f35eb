"""Spark's own reader gets the keys and the endpoint that fsspec gets."""

import pytest

from streaming.spark.hadoop_settings import hadoop_settings

PROVIDER = "org.apache.hadoop.fs.s3a."


@pytest.mark.parametrize(
    ("scheme", "options", "expected"),
    [
        ("s3a", {}, {}),
        ("gs", {"key": "k", "secret": "s"}, {}),
        ("s3", {"anon": True}, {"aws.credentials.provider": f"{PROVIDER}AnonymousAWSCredentialsProvider"}),
        ("s3a", {"key": "k"}, {}),  # half of a pair
        (
            "s3a",
            {"key": "k", "secret": "s", "client_kwargs": {"endpoint_url": "http://m:9000", "region_name": "r"}},
            {
                "access.key": "k",
                "secret.key": "s",
                "aws.credentials.provider": f"{PROVIDER}SimpleAWSCredentialsProvider",
                "endpoint": "http://m:9000",
                "endpoint.region": "r",
                "path.style.access": "true",
                "connection.ssl.enabled": "false",
            },
        ),
        (
            "s3n",
            {"key": "k", "secret": "s", "token": "t", "endpoint_url": "https://m"},
            {
                "access.key": "k",
                "secret.key": "s",
                "session.token": "t",
                "aws.credentials.provider": f"{PROVIDER}TemporaryAWSCredentialsProvider",
                "endpoint": "https://m",
                "path.style.access": "true",
                "connection.ssl.enabled": "true",
            },
        ),
    ],
)
def test_settings_of_hadoops_client(scheme, options, expected):
    assert hadoop_settings(scheme, options) == {f"fs.s3a.{key}": value for key, value in expected.items()}
