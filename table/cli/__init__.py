"""The command `hudistream`.

A new command goes here if it writes no rows, else into `streaming.cli`; its name into `GROUPS` or `MORE` of the
``main.py`` there. A new module also has a line in `build_parser`.
"""
