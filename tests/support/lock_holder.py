"""Holds a lock until it reads a line, then says whether it still does. To be stopped and killed by tests.

Arguments: the table's address, and the settings of the lock as JSON.
"""

import json
import sys

from table.errors import HudiError
from table.storage.opening import open_storage
from table.transaction.locks import LockSettings, make_lock


def main():
    address, settings, options = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    with make_lock(open_storage(address, options), LockSettings(**settings)).hold() as held:
        print("held", flush=True)
        sys.stdin.readline()
        try:
            held.check()
            print("still held", flush=True)
        except HudiError as error:
            print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
