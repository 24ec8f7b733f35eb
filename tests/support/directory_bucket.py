"""A stand-in for a directory bucket of S3 Express, in this process: moto's server with the rules of such buckets.

The rules are those of Amazon's page "Differences for directory buckets". Its latencies, and the errors that it gives
under load, are not stood in for.
"""

import functools
import zlib
from contextlib import contextmanager
from unittest import mock

from needs import require
from s3_server import serve_s3

BUCKET = "lake--use1-az4--x-s3"
PAGE = 20  # entries of a page: a folder of some files has several

_XML = {"content-type": "application/xml"}
_SESSION = """<?xml version="1.0" encoding="UTF-8"?>
<CreateSessionResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Credentials>
<AccessKeyId>session</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></CreateSessionResult>"""
# what is asked of a bucket, and a directory bucket does not know
_UNKNOWN = frozenset({"versioning", "versions", "object-lock", "acl", "tagging", "logging", "website", "cors"})


def broken_rule(query):
    """What a directory bucket would not do of a GET of the bucket; None: nothing.

    Args:
        query: names of the parameters -> their values.
    """
    prefix, delimiter = (query.get(name, [""])[0] for name in ("prefix", "delimiter"))
    if _UNKNOWN & set(query):
        return f"asks for {_UNKNOWN & set(query)}"
    if prefix and not prefix.endswith("/"):
        return f"the prefix {prefix} does not end in /"
    if delimiter not in ("", "/"):
        return f"the delimiter is {delimiter}"
    if "uploads" not in query and query.get("list-type") != ["2"]:
        return f"lists with {sorted(query)}"
    return "start-after" if "start-after" in query else None


@contextmanager
def directory_bucket():
    """Yields the bucket's address, options for fsspec, and a list of the requests that were refused."""
    responses = require("moto.s3.responses").S3Response
    models = require("moto.s3.models").S3Backend
    refused = []
    answer_get, list_keys, complete = (
        responses._bucket_response_get,
        models.list_objects_v2,
        models.complete_multipart_upload,
    )

    @functools.wraps(answer_get)
    def get_of_bucket(self, bucket_name, query):
        if bucket_name != BUCKET:
            return answer_get(self, bucket_name, query)
        if "session" in query:
            return 200, dict(_XML), _SESSION
        why = broken_rule(query)
        if why is None:
            return answer_get(self, bucket_name, query)
        refused.append(why)
        return 400, dict(_XML), f"<Error><Code>InvalidRequest</Code><Message>{why}</Message></Error>"

    @functools.wraps(list_keys)
    def list_in_no_order(self, bucket, prefix, delimiter, continuation_token, start_after, max_keys):
        if bucket.name != BUCKET:
            return list_keys(self, bucket, prefix, delimiter, continuation_token, start_after, max_keys)
        found = list_keys(self, bucket, prefix, delimiter, None, None, 1_000_000)[0]
        named = {entry if isinstance(entry, str) else entry.name: entry for entry in found}
        if delimiter:  # a folder is shown in which there is only an upload that is not completed
            below = prefix or ""
            begun = [upload.key_name for upload in bucket.multiparts.values() if upload.key_name.startswith(below)]
            folders = [key.removeprefix(below).partition("/") for key in begun]
            named.update((f"{below}{name}/", f"{below}{name}/") for name, slash, _ in folders if slash)
        mixed = sorted(named, key=lambda name: zlib.crc32(name.encode()))
        start = int(continuation_token or 0)
        more = len(mixed) > start + PAGE
        return [named[name] for name in mixed[start : start + PAGE]], more, str(start + PAGE) if more else None

    @functools.wraps(complete)
    def complete_in_a_row(self, bucket_name, multipart_id, body):
        parts = list(body)
        if bucket_name == BUCKET and [number for number, _ in parts] != list(range(1, len(parts) + 1)):
            refused.append(f"parts {[number for number, _ in parts]}")
        return complete(self, bucket_name, multipart_id, parts)

    with (
        mock.patch.object(responses, "_bucket_response_get", get_of_bucket),
        mock.patch.object(models, "list_objects_v2", list_in_no_order),
        mock.patch.object(models, "complete_multipart_upload", complete_in_a_row),
        serve_s3() as address,
    ):
        client = {"endpoint_url": address, "region_name": "us-east-1"}
        plain = require("boto3").client("s3", aws_access_key_id="test", aws_secret_access_key="test", **client)
        plain.create_bucket(
            Bucket=BUCKET,
            CreateBucketConfiguration={
                "Location": {"Type": "AvailabilityZone", "Name": "use1-az4"},
                "Bucket": {"Type": "Directory", "DataRedundancy": "SingleAvailabilityZone"},
            },
        )
        yield f"s3a://{BUCKET}", {"key": "test", "secret": "test", "client_kwargs": client}, refused
