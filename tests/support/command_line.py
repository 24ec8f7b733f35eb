"""The command line, called in this process."""

from table.cli.main import main


def said(capsys, *arguments, code=0):
    """What a command prints, on both outputs; asserts its exit code."""
    assert main(arguments) == code
    out = capsys.readouterr()
    return out.out + out.err
