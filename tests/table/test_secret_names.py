"""Values that are not shown: by the name of their option, in logs and in errors."""

import pyarrow as pa
import pytest

from hudistream import ArrowSink
from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.options.values import refuse
from table.options.without_effect import WITHOUT_EFFECT
from table.options.write_options import parse_options
from table.secret_names import HIDDEN, hiding, is_secret, shown_value

SECRET = "s3cr3t-value"


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("hoodie.datasource.hive_sync.password", True),
        ("hoodie.metrics.pushgateway.PASSWD", True),
        ("fs.s3a.secret.key", True),
        ("fs.s3a.access.key", True),
        ("hoodie.metrics.datadog.api.key", True),
        ("azure.account_key", True),
        ("hoodie.aws.session.token", True),
        ("hoodie.aws.credentials.provider", True),
        ("properties.sasl.jaas.config", True),
        ("properties.ssl.keystore.location", True),
        ("hoodie.datasource.write.recordkey.field", False),
        ("hoodie.bucket.index.hash.field", False),
        ("hoodie.key.generator.type", False),
    ],
)
def test_which_values_are_secrets(key, secret):
    assert is_secret(key) is secret
    assert shown_value(key, SECRET) == (HIDDEN if secret else SECRET)


def test_no_value_of_a_key_without_effect_is_logged(tmp_path, logs):
    secrets = dict.fromkeys((*WITHOUT_EFFECT, "properties.sasl.jaas.config"), SECRET)
    sink = ArrowSink(str(tmp_path / "t"), secrets, key="id")
    sink.write(pa.table({"id": ["a"]}))
    sink.stop()
    assert {entry.get("key") for entry in logs} >= set(secrets)
    assert SECRET not in repr(logs)


def test_no_secret_stands_in_an_error():
    with pytest.raises(InvalidConfigError) as found:
        refuse("hoodie.some.secret.key", SECRET, "it does not fit")
    assert SECRET not in str(found.value)
    with pytest.raises(InvalidConfigError) as unknown:
        parse_options({"fs.s3a.secret.key": SECRET, "hoodie.no.such.token": SECRET})
    assert SECRET not in str(unknown.value)


@pytest.mark.parametrize("named", ["jdbcurl, LOCK_TABLE", ["jdbcurl", "lock-table"]])
def test_parts_of_keys_that_the_options_name_are_hidden_while_they_are_read(named):
    key = "hoodie.write.lock.dynamodb.lock.table.wait"
    assert not is_secret(key)
    with hiding({"hoodie.sensitive.config.keys": named}):
        assert is_secret(key)
    assert not is_secret(key)


def test_an_error_hides_the_values_that_the_options_name_as_sensitive():
    given = {"hoodie.populate.meta.fields": SECRET}
    with pytest.raises(InvalidConfigError, match=SECRET):
        parse_options(given)
    with pytest.raises(InvalidConfigError) as found:
        parse_options({"hoodie.sensitive.config.keys": "meta.fields", **given})
    assert SECRET not in str(found.value)


@pytest.mark.parametrize("address", ["s3a://AK:{}@lake/t", "http://user:{}@127.0.0.1:9/t", "s3a://lake/t?secret={}"])
def test_an_address_that_holds_a_secret_is_refused_and_not_shown(address):
    with pytest.raises(InvalidConfigError, match="storage_options") as found:
        HudiTable.open(address.format(SECRET))
    assert SECRET not in str(found.value)
