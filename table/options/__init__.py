"""Options: strings and typed groups, and the meaning of each key.

`keys.py` lists honoured keys and other spellings, `refused.py` refused keys, `without_effect.py` those without
effect, with the reason. `vocabulary.py` sorts given keys into these classes. `read_options.py` has the options of
reading.
"""
