"""Where the log goes: a new process for each case, because a process has one `logging`."""

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.usefixtures("tmp_path")  # a process each: none of them only decides over values

BEGIN = "from table.log import get_logger; import logging, sys; log = get_logger('hudistream.sink')\n"


def ran(code):
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.splitlines()


def test_whoever_configured_nothing_sees_info_on_standard_error():
    out, err = ran("log.debug('step'); log.info('batch_committed', table='t', rows=3); log.warning('w', why='a b')")
    assert out == ""
    assert [line.split(maxsplit=1)[1] for line in err] == [
        "INFO    batch_committed table=t rows=3",
        "WARNING w why='a b'",
    ]


def test_an_application_that_configured_logging_gets_the_records_and_nothing_is_added():
    out, err = ran("""
        logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="%(levelname)s %(name)s %(message)s")
        log.debug("step", n=1)
        log.info("done", share="50 %")
        assert not logging.getLogger("hudistream").handlers
        assert logging.getLogger("hudistream").level == logging.NOTSET
    """)
    assert err == []
    assert out.splitlines() == ["DEBUG hudistream.sink step n=1", "INFO hudistream.sink done share='50 %'"]


def test_the_levels_of_the_application_count():
    assert ran("logging.basicConfig(level=logging.WARNING); log.info('x'); log.warning('y')")[1] == [
        "WARNING:hudistream.sink:y"
    ]
    assert ran("logging.getLogger('hudistream').setLevel(logging.ERROR); log.info('x'); log.warning('y')") == ("", [])
    assert "DEBUG   x" in ran("logging.getLogger('hudistream').setLevel(logging.DEBUG); log.debug('x')")[1][0]


def test_a_null_handler_makes_it_silent():
    assert ran("logging.getLogger('hudistream').addHandler(logging.NullHandler()); log.error('x')") == ("", [])


def test_an_application_that_configures_logging_later_sees_nothing_twice():
    out, err = ran("""
        log.info("early")
        logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
        log.info("late")
        logging.getLogger().setLevel(logging.WARNING)
        log.info("not wanted")
    """)
    assert [line.split()[-1] for line in err] == ["early"]
    assert out == "late\n"


def test_nothing_happens_to_logging_on_import():
    ran("""
        import table, streaming
        assert not logging.getLogger().handlers and not logging.getLogger("hudistream").handlers
        assert logging.getLoggerClass() is logging.Logger
    """)


def test_structlog_is_respected_where_the_application_configured_it():
    out, err = ran("""
        import structlog
        structlog.configure(processors=[structlog.processors.JSONRenderer(sort_keys=True)])
        log.info("x", rows=1)
    """)
    assert (out, err) == ('{"event": "x", "rows": 1}\n', [])


def test_a_record_has_the_fields_and_the_place_of_the_call():
    ran("""
        import structlog
        seen = []
        class Handler(logging.Handler):
            def emit(self, record):
                seen.append(record)
        logging.getLogger("hudistream").addHandler(Handler())
        logging.getLogger("hudistream").setLevel(logging.INFO)
        def caller():
            with structlog.contextvars.bound_contextvars(batch_id=7):
                log.info("x", name="n", rows=1)
        caller()
        assert seen[0].hudistream == {"event": "x", "name": "n", "rows": 1, "batch_id": 7}
        assert seen[0].getMessage() == "x name=n rows=1 batch_id=7"
        assert seen[0].funcName == "caller", seen[0].funcName
    """)


def test_an_exception_comes_with_its_traceback():
    err = ran("""
        try:
            1 / 0
        except ZeroDivisionError:
            log.exception("failed_after_commit")
    """)[1]
    assert "ERROR   failed_after_commit" in err[0]
    assert "ZeroDivisionError" in err[-1]


@pytest.mark.parametrize("value", ["", "two words", 'a"b', "a=b", "two\nlines"])
def test_a_value_that_would_be_misread_is_quoted(value):
    (line,) = ran(f"log.info('x', value={value!r})")[1]
    assert line.endswith(f"x value={value!r}")
