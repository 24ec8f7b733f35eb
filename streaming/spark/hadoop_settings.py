"""Settings of Hadoop's S3 client for Spark's own readers, from what fsspec's file system gets (pure).

So keys and endpoints have one place: a user need not repeat ``storage_options`` as ``spark.hadoop.fs.s3a.*``.
"""

from collections.abc import Mapping
from typing import Any

_S3 = ("s3", "s3a", "s3n")
_PROVIDER = "org.apache.hadoop.fs.s3a."


def hadoop_settings(scheme: str, options: Mapping[str, Any]) -> dict[str, str]:
    """The settings for a DataFrame reader; none for a store other than S3.

    Args:
        scheme: the scheme of the table's address.
        options: the options of s3fs: ``key``, ``secret``, ``token``, ``anon``, ``endpoint_url``, ``client_kwargs``.

    Returns:
        Keys ``fs.s3a.*`` (Hadoop's class S3AFileSystem). Spark's own settings give what the options leave out.
    """
    if scheme not in _S3:
        return {}
    client = options.get("client_kwargs") or {}
    endpoint = options.get("endpoint_url") or client.get("endpoint_url")
    region = client.get("region_name")
    key = options.get("key") or client.get("aws_access_key_id")
    secret = options.get("secret") or client.get("aws_secret_access_key")
    token = options.get("token") or client.get("aws_session_token")
    settings = {}
    if endpoint:
        settings["fs.s3a.endpoint"] = str(endpoint)
        settings["fs.s3a.path.style.access"] = "true"
        settings["fs.s3a.connection.ssl.enabled"] = str(not str(endpoint).startswith("http://")).lower()
    if region:
        settings["fs.s3a.endpoint.region"] = str(region)
    if options.get("anon"):
        settings["fs.s3a.aws.credentials.provider"] = f"{_PROVIDER}AnonymousAWSCredentialsProvider"
    elif key and secret:
        settings["fs.s3a.access.key"], settings["fs.s3a.secret.key"] = str(key), str(secret)
        kind = "TemporaryAWSCredentialsProvider" if token else "SimpleAWSCredentialsProvider"
        settings["fs.s3a.aws.credentials.provider"] = f"{_PROVIDER}{kind}"
        if token:
            settings["fs.s3a.session.token"] = str(token)
    return settings
