"""The rights on S3 that the guide grants are enough, and each of them is needed."""

import json
import re
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from needs import require
from s3_server import serve_s3

from hudistream import HudiTable
from streaming import ArrowSink
from table import HudiError

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "deploy.md"
OPTIONS = {
    "hoodie.clean.async": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hudistream.clean.grace.ms": "0",
}


def policy_of_the_guide():
    [text] = re.findall(r"^```json\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    return json.loads(text)


def set_free_actions(address, count):
    """Sets how many actions moto carries out before it asks whether the user has the right."""
    request = urllib.request.Request(
        f"{address}/moto-api/reset-auth", count.encode(), {"Content-Type": "text/plain"}, method="POST"
    )
    urllib.request.urlopen(request).close()


@contextmanager
def as_user(policy):
    """An S3 where a user has the rights of a policy, and none besides: fsspec's options for that user."""
    with serve_s3() as address:
        region = {"endpoint_url": address, "region_name": "us-east-1"}
        admin = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        iam = require("boto3").client("iam", **region, **admin)
        iam.create_user(UserName="stream")
        iam.put_user_policy(UserName="stream", PolicyName="p", PolicyDocument=json.dumps(policy))
        key = iam.create_access_key(UserName="stream")["AccessKey"]
        set_free_actions(address, "0")
        try:
            yield {"key": key["AccessKeyId"], "secret": key["SecretAccessKey"], "client_kwargs": region}
        finally:
            set_free_actions(address, "inf")


def write_and_look(options):
    """Seven batches with cleans and archivals; (rows, instants, findings)."""
    sink = ArrowSink("s3://lake/t", OPTIONS, key="id", order_by="ts", operation="upsert", storage_options=options)
    try:
        for number in range(7):
            sink.write(pa.table({"id": [f"k{n}" for n in range(20)], "ts": [number] * 20}))
    finally:
        sink.stop()
    table = HudiTable.open("s3://lake/t", options)
    return table.scan().count(), table.history().num_rows < 14, table.check().findings


def granted(without=None):
    """The guide's policy for bucket and folder of the test.

    moto asks for the right to delete several objects on the bucket, AWS on each object.
    """
    policy = policy_of_the_guide()
    objects, bucket = policy["Statement"]
    assert (objects["Resource"], bucket["Resource"]) == ("arn:aws:s3:::lake/tables/*", "arn:aws:s3:::lake")
    objects["Resource"] = "arn:aws:s3:::lake/t/*"
    del bucket["Condition"]
    bucket["Action"] = [*bucket["Action"], "s3:DeleteObject"]
    for statement in (objects, bucket):
        statement["Action"] = [action for action in statement["Action"] if action != without]
    policy["Statement"] = [statement for statement in (objects, bucket) if statement["Action"]]
    return policy


def test_the_rights_of_the_guide_are_enough():
    with as_user(granted()) as options:
        assert write_and_look(options) == (20, True, ())


# moto does not ask for the right to abort an upload
@pytest.mark.parametrize("missing", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"])
def test_each_is_needed_and_its_lack_is_told(missing):
    with as_user(granted(without=missing)) as options, pytest.raises(HudiError, match=r"(?s)'lake'.*denies"):
        write_and_look(options)
