"""Times in partition paths: settings and their refusals, date forms, and the SQL of a time column."""

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.errors import InvalidConfigError, SchemaMismatchError
from table.keys.time_partition import PREFIX, TimePartition, build_time_value, parse_time_partition, split_format

SCALARS = {"timestamp.type": "scalar", "output.dateformat": "yyyy/MM"}
TEXTS = {**SCALARS, "timestamp.type": "DATE_STRING", "input.dateformat": "yyyy"}
ZONES = {"input.timezone": "GMT+8:00", "output.timezone": "Europe/Berlin"}
TEXT = st.text(st.characters() | st.just("'"), min_size=1, max_size=4)


def parsed(settings):
    return parse_time_partition({PREFIX + name: value for name, value in settings.items()})


def patterns_of(*forms):
    sql = build_time_value(TimePartition("MIXED", "yyyy", input_formats=forms), "`c`", pa.string(), "c")
    literals = dict.fromkeys(re.findall(r"`c` RLIKE '((?:[^'\\]|\\.)*)'", sql))
    found = [re.sub(r"\\(u0024|.)", lambda found: found[1].replace("u0024", "$"), one) for one in literals]
    return [one.removesuffix(r"\z") + r"\Z" for one in found]  # Python's name for the end of a text


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({**SCALARS, "timestamp.scalar.time.unit": "days"}, ("SCALAR", "yyyy/MM", "UTC", (), "UTC", "DAYS")),
        ({**TEXTS, "input.dateformat": " yyyy ,, MM/dd,"}, ("DATE_STRING", "yyyy/MM", "UTC", ("yyyy", "MM/dd"))),
        ({**TEXTS, "input.dateformat": "yyyy,MM;dd", "input.dateformat.list.delimiter.regex": "[;|]", **ZONES},
         ("DATE_STRING", "yyyy/MM", "Europe/Berlin", ("yyyy,MM", "dd"), "GMT+8:00")),
        ({**SCALARS, **ZONES, "timezone": "+5:30"}, ("SCALAR", "yyyy/MM", "+5:30", (), "+5:30", "SECONDS")),
    ],
)  # fmt: skip
def test_settings_are_read_and_one_zone_for_all_comes_before_the_zones_of_input_and_output(settings, expected):
    assert parsed(settings) == TimePartition(*expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"timestamp.type": ""}, "timestamp.type=(not set): the timestamp key generator needs one of UNIX_TIMESTAMP, "),
        ({"output.dateformat": ""}, "output.dateformat is not set: give the form of the path"),
        ({"input.dateformat": " , "}, "input.dateformat is not set: DATE_STRING needs the form of the texts"),
        ({"timestamp.scalar.time.unit": "weeks"}, "timestamp.scalar.time.unit=WEEKS: one of NANOSECONDS, "),
        ({"input.timezone": "GMT+1:0"}, "GMT+1:0: there is no such time zone"),
        ({"input.dateformat": "yyyy,DDD"}, "the date form 'DDD' has 'DDD': supported are yyyy MM dd HH mm ss"),
    ],
)
def test_a_setting_that_is_missing_or_wrong_is_named(change, message):
    with pytest.raises(InvalidConfigError, match=re.escape(message)):
        parsed({**TEXTS, **change})


@given(st.lists(st.tuples(TEXT, st.sampled_from(["yyyy", "MM", "dd", "HH", "mm", "ss"])), max_size=4))
def test_quoted_text_is_kept_as_it_is_between_the_fields_of_a_form(parts):
    form = "".join("'" + text.replace("'", "''") + "'" + field for text, field in parts)
    assert split_format(form) == [piece for text, field in parts for piece in ((text, False), (field, True))]


@pytest.mark.parametrize(("field", "first", "last"), [("MM", 1, 12), ("dd", 1, 31), ("HH", 0, 23), ("ss", 0, 59)])
def test_a_field_takes_two_digits_as_calendar_and_clock_have_them_and_no_others(field, first, last):
    [pattern] = patterns_of(field)
    texts = [f"{number:02}" for number in range(100)] + ["", "1", "001", " 01", "01 "]
    assert [text for text in texts if re.search(pattern, text)] == [f"{one:02}" for one in range(first, last + 1)]


def test_the_sql_tries_the_forms_of_texts_in_order_and_takes_other_characters_as_they_are():
    fits = [re.compile(pattern).search for pattern in patterns_of("yyyy-MM-dd", "dd.MM.yyyy HH")]
    texts = ["2024-02-29", "29.02.2024 23", "29x02x2024 23"]
    assert [[bool(fit(text)) for text in texts] for fit in fits] == [[True, False, False], [False, True, False]]


def test_a_time_goes_from_the_zone_of_its_source_to_that_of_the_path_and_a_null_has_hudis_value():
    settings = TimePartition("MIXED", "yyyy", "Asia/Tokyo", ("yyyy",), "Asia/Kolkata", "DAYS")
    text, number = (build_time_value(settings, "`c`", kind, "c") for kind in (pa.string(), pa.int64()))
    assert "convert_timezone('Asia/Kolkata', 'Asia/Tokyo', CASE WHEN `c` IS NULL THEN TIMESTAMP_NTZ'1970-01-01" in text
    assert "convert_timezone('UTC', 'Asia/Tokyo', " in number
    assert "pmod((coalesce(CAST(`c` AS BIGINT), 1L)), 86400000L)" in number  # milliseconds: no SCALAR, so no unit
    assert "convert_timezone" not in build_time_value(TimePartition("MIXED", "yyyy"), "`c`", pa.int64(), "c")


def test_a_column_whose_type_is_no_time_of_the_settings_is_refused_by_name():
    for kind, message in ((pa.string(), r"is a string, and .*timestamp.type is SCALAR"), (pa.bool_(), "is no time")):
        with pytest.raises(SchemaMismatchError, match=f"the column 'c' .*{message}"):
            build_time_value(TimePartition("SCALAR", "yyyy"), "`c`", kind, "c")


@pytest.mark.parametrize(
    ("delimiter", "formats"),
    [(",", ("yyyy;MM", "dd")), ("[;,]", ("yyyy", "MM", "dd")), ("(,|;)", ("yyyy", "MM", "dd"))],
)
def test_forms_are_split_at_the_delimiter_whatever_groups_it_has(delimiter, formats):
    settings = {
        PREFIX + "timestamp.type": "DATE_STRING",
        PREFIX + "output.dateformat": "yyyy",
        PREFIX + "input.dateformat": "yyyy;MM, dd",
        PREFIX + "input.dateformat.list.delimiter.regex": delimiter,
    }
    assert parse_time_partition(settings).input_formats == formats
    with pytest.raises(InvalidConfigError, match=r"delimiter\.regex=\( is no regular expression"):
        parse_time_partition({**settings, PREFIX + "input.dateformat.list.delimiter.regex": "("})


@pytest.mark.parametrize("key", ["timezone", "output.timezone", "input.timezone"])
def test_a_zone_that_does_not_exist_is_named_with_the_key_that_names_it(key):
    settings = {PREFIX + "timestamp.type": "UNIX_TIMESTAMP", PREFIX + "output.dateformat": "yyyy"}
    with pytest.raises(InvalidConfigError, match=f"timebased.{key}=Nowhere/City: there is no such time zone"):
        parse_time_partition({**settings, PREFIX + key: "Nowhere/City"})
