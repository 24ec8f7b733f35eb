"""What S3 answers beside "done": the answer is lost, another request is under way, credentials have expired."""

import itertools
from contextlib import contextmanager, suppress
from unittest import mock

import pytest
from aiobotocore.client import AioBaseClient
from botocore.exceptions import ClientError
from s3_server import s3_options, serve_s3

from table.errors import StorageError
from table.storage.byte_ranges import ByteRange
from table.storage.opening import open_storage
from table.threads import make_pool

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def s3():
    with s3_options() as options:
        yield options


def refused(code, operation="PutObject", status=409):
    said = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(said, operation)


@contextmanager
def answering(rule):
    """Lets `rule(call, name, parameters)` answer each request; `call()` makes it."""
    whole = AioBaseClient._make_api_call

    async def answer(self, name, parameters):
        return await rule(lambda: whole(self, name, parameters), name, parameters)

    with mock.patch.object(AioBaseClient, "_make_api_call", answer):
        yield


def losing(times):
    """The first `times` creations are carried out, and their answers are lost; then s3fs repeats the request."""
    left = [times]

    async def rule(call, name, parameters):
        if "IfNoneMatch" not in parameters or not left[0]:
            return await call()
        left[0] -= 1
        await call()
        raise refused("SlowDown", status=503)

    return rule


def proven(s3, name):
    storage = open_storage(f"s3://lake/{name}", s3)
    assert storage.create_exclusive(".hoodie/first", b"")  # the store has been tried
    return storage


@pytest.mark.parametrize("data", [b"", b"content"])
def test_a_creation_whose_answer_was_lost_is_ones_own(s3, data):
    storage = proven(s3, f"lost{len(data)}")
    with answering(losing(1)):
        assert storage.create_exclusive(".hoodie/a", data)
    assert storage.read(".hoodie/a") == data
    assert not storage.create_exclusive(".hoodie/a", data)


def test_equal_bytes_of_another_writer_are_not_ones_own(s3):
    storage = proven(s3, "equal")

    async def after_another_writer(call, name, parameters):
        if "IfNoneMatch" in parameters:
            ours, parameters["Metadata"] = parameters["Metadata"], {"hudistream-creation": "of another call"}
            with suppress(ClientError):
                await call()
            parameters["Metadata"] = ours
        return await call()

    with answering(after_another_writer):
        assert not storage.create_exclusive(".hoodie/a", b"")


def test_of_writers_with_equal_bytes_and_lost_answers_one_wins(s3):
    storage = proven(s3, "crowd")
    with answering(losing(4)), make_pool(4, "crowd") as pool:
        for number in range(5):
            won = list(pool.map(lambda _, n=number: storage.create_exclusive(f".hoodie/{n}", b""), range(4)))
            assert won.count(True) == 1


@pytest.mark.parametrize("code", ["ConditionalRequestConflict", "OperationAborted"])
def test_a_creation_that_collides_is_repeated(s3, code):
    storage, left = proven(s3, code), [3]

    async def collide(call, name, parameters):
        if "IfNoneMatch" in parameters and left[0]:
            left[0] -= 1
            raise refused(code)
        return await call()

    with answering(collide):
        assert storage.create_exclusive(".hoodie/a", b"1")
        left[0] = 1
        assert storage.replace_if(".hoodie/b", b"1", None) is None
        assert storage.replace_if(".hoodie/b", b"1", None) is not None
        left[0] = 99
        with pytest.raises(StorageError, match="requests collide"):
            storage.create_exclusive(".hoodie/c", b"1")


def test_an_answer_about_an_object_that_was_not_deleted_is_an_error_that_shows_it(s3):
    storage = proven(s3, "deletes")
    paths = [f".hoodie/.temp/1/{n}" for n in range(3)]
    for path in [*paths, "p/a", "p/b"]:
        storage.put(path, b"")

    async def answer_strangely(call, name, parameters):
        if name != "DeleteObjects":
            return await call()
        return {"Errors": [{"Key": "x", "Code": "InternalError", "Message": "m"}]}

    async def refuse_one(call, name, parameters):
        if name != "DeleteObjects":
            return await call()
        key = parameters["Delete"]["Objects"][0]["Key"]
        return {"Errors": [{"Key": key, "Code": "InternalError", "Message": "m"}]}

    with answering(answer_strangely):
        with pytest.raises(StorageError, match="and 2 more: the store's answer names 'x'.*InternalError"):
            storage.delete_metafolder(".hoodie/.temp/1")
        with make_pool(1, "test") as pool:
            assert storage.delete_many(["p/a", "p/b"], pool) == {"p/a", "p/b"}
    with answering(refuse_one), make_pool(1, "test") as pool:
        assert storage.delete_many(["p/a", "p/b"], pool) == {"p/a"}


@contextmanager
def expiring(*keys):
    """The store refuses these access keys."""
    whole, seen = AioBaseClient._make_api_call, []

    async def answer(self, name, parameters):
        seen.append(vars(self._request_signer._credentials)["access_key"])
        if seen[-1] in keys:
            raise refused("ExpiredToken" if name != "HeadObject" else "400", name, 400)
        return await whole(self, name, parameters)

    with mock.patch.object(AioBaseClient, "_make_api_call", answer):
        yield seen


@pytest.fixture
def of_environment(monkeypatch):
    """Options without credentials, and the function that changes those of the environment."""

    def change(key):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"secret of {key}")

    with serve_s3() as address:
        change("OLDKEY")
        # an instance of its own for each test
        yield {"client_kwargs": {"endpoint_url": address}, "default_block_size": (6 << 20) + next(_NUMBERS)}, change


def test_expired_credentials_of_the_environment_are_read_again(of_environment):
    options, change = of_environment
    storage = open_storage("s3://lake/t", options)
    storage.put("a", b"0123456789")
    change("NEWKEY")
    acts = {
        "read": lambda: storage.read("a"),
        "list": lambda: storage.list_dir(""),
        "tree": lambda: storage.list_tree(""),
        "exists": lambda: storage.exists("a"),
        "create": lambda: storage.create_exclusive(".hoodie/a", b""),
        "version": lambda: storage.read_versioned("a"),
        "replace": lambda: storage.replace_if("b", b"", None),
        "delete": lambda: storage.delete("b"),
        "folder": lambda: storage.delete_metafolder(".hoodie/x"),
        "part": lambda: storage.read_part("a", 0, 3),
        "input": lambda: storage.open_input("a", 10),
    }
    gone = ["OLDKEY"]
    for number, (name, act) in enumerate(acts.items()):
        with expiring(*gone) as seen:
            act()
        assert seen[0] == gone[-1], name  # and was renewed by the next request
        assert seen[1] == ("NEWKEY" if number == 0 else f"NEWKEY{number}"), name
        gone.append(seen[-1])
        change(f"NEWKEY{number + 1}")


def test_an_upload_goes_on_with_new_credentials(of_environment):
    options, change = of_environment
    storage = open_storage("s3://lake/t", options)
    storage.put("old", b"o" * (6 << 20))
    stage = storage.stage("1", "new")
    output = storage.open_copy("old", [ByteRange(0, 6 << 20)], "new", stage)
    output.write(b"n")
    change("NEWKEY")
    with expiring("OLDKEY"):
        output.close()
        storage.publish("new", stage, output)
    assert storage.read("new") == b"o" * (6 << 20) + b"n"


def test_the_error_names_the_key_that_was_sent_and_no_secret(of_environment):
    options, change = of_environment
    storage = open_storage("s3://lake/t", options)
    storage.put("a", b"")
    with expiring("OLDKEY") as seen:
        with pytest.raises(StorageError, match="as access key OLDKEY: the credentials have expired") as caught:
            storage.read("a")
        assert seen == ["OLDKEY", "OLDKEY"]  # opened anew once
        change("NEWKEY")
        assert storage.read("a") == b""
    with expiring("NEWKEY"), pytest.raises(StorageError, match="as access key NEWKEY"):
        storage.read("a")
    assert "secret of" not in str(caught.value)
