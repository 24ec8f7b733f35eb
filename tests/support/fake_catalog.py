"""A catalog in memory."""

from dataclasses import replace

from table.errors import CatalogError


class FakeCatalog:
    """Keeps what it is told, and counts what it is asked.

    Attributes:
        tables: (database, name) -> registration.
        partitions: the same -> values -> (location, columns).
        calls: names of the methods, in order.
        is_down: answers nothing.
        ends_at: number of the call that is not answered, and none after it; None: all are.
    """

    def __init__(self):
        self.databases, self.tables, self.partitions, self.calls = set(), {}, {}, []
        self.is_down, self.ends_at = False, None

    def _called(self, name):
        self.calls.append(name)
        if self.is_down or (self.ends_at is not None and len(self.calls) >= self.ends_at):
            raise CatalogError("the catalog is down")

    def create_database(self, name):
        self._called("create_database")
        self.databases.add(name)

    def find_table(self, database, name):
        self._called("find_table")
        return self.tables.get((database, name))

    def create_table(self, wanted):
        self._called("create_table")
        assert wanted.database in self.databases
        self.tables.setdefault((wanted.database, wanted.name), wanted)
        self.partitions.setdefault((wanted.database, wanted.name), {})

    def change_table(self, wanted, *, cascades):
        self._called("change_table, cascading" if cascades else "change_table")
        key = wanted.database, wanted.name
        stored = self.tables[key].parameters
        self.tables[key] = replace(wanted, parameters={**stored, **wanted.parameters})
        if cascades:
            of = self.partitions[key]
            of.update({values: (location, wanted.columns) for values, (location, _) in of.items()})

    def list_partitions(self, of):
        self._called("list_partitions")
        return {values: location for values, (location, _) in self.partitions[of.database, of.name].items()}

    def add_partitions(self, of, added):
        self._called("add_partitions")
        there = self.partitions[of.database, of.name]
        new = {values: (location, of.columns) for values, location in added.items() if values not in there}
        there.update(new)
        return len(new)

    def move_partitions(self, of, moved):
        self._called("move_partitions")
        self.partitions[of.database, of.name].update({v: (location, of.columns) for v, location in moved.items()})

    def drop_partitions(self, of, dropped):
        self._called("drop_partitions")
        for values in dropped:
            self.partitions[of.database, of.name].pop(values, None)

    def close(self):
        self._called("close")
