"""One stream into many tables.

Rows wait for a table that fails: `aside.py` reads and writes them, `waiting_room.py` has those of one router.
"""
