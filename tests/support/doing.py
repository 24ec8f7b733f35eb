"""A service that does what a test wants, in the place of cleaning and archival."""

from table.options.choices import CleanFailure
from table.services.service import ServiceOutcome, Trigger


class Doing:
    """A service of a sink that calls something."""

    name, plans_between_batches, follows_commits = "doing", False, False

    def __init__(self, run, on_failure=CleanFailure.WARN, when=Trigger.BACKGROUND):
        self.run, self.on_failure, self.when = run, on_failure, when

    def trigger(self, config):
        return self.when

    def note_commit(self, snapshot):
        """Nothing."""

    def plan(self, table):
        return "a plan"

    def execute(self, table, plan, spread=None):
        self.run(table)
        return ServiceOutcome()
