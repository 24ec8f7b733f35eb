"""The command `hudistream`: the commands of `table.cli`, and those that write rows."""
