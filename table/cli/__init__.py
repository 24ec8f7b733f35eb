"""The command `hudistream`."""
