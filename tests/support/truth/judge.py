"""Does a case on disk, asks every reader, and says where an answer is not the model's."""

import re
import shutil
from collections import Counter
from dataclasses import dataclass, field

from oracles import hudi as oracle

from hudistream import HudiError, HudiTable, InvalidConfigError, UnsupportedTableError

from .cases import Question
from .known import find_known
from .model import AmbiguousError, Model
from .readers import PLAIN, Asked, UnaskedError
from .writers import Arrow

# a question about the past may be refused behind these: the snapshot may be gone
LOSES_HISTORY = ("clean", "archive", "convert", "roll_back", "restore")


@dataclass(frozen=True)
class Difference:
    """An answer that is not the model's, or a failure.

    Attributes:
        who: the reader, or the writer.
        what: the question or the step.
        expected: rows that are missing; or what should have happened.
        found: rows that should not be there; or the error.
    """

    who: str
    what: object
    expected: object
    found: object

    @property
    def kind(self):
        """What a shrunk case must still show: who, and rows or the kind of an error."""
        return self.who, self.found.split(":")[0] if isinstance(self.found, str) else "rows"


@dataclass
class Outcome:
    """Of a case.

    Attributes:
        differences: of our own.
        counts: questions by reader and how they ended: right, refused, unasked; of known faults of others, the name.
        undefined: why the case says nothing; "" if it does.
        portrait: of the table, if it is wanted and the history came to its end.
    """

    differences: list = field(default_factory=list)
    counts: Counter = field(default_factory=Counter)
    undefined: str = ""
    portrait: dict | None = None


class Judge:
    """Judges cases.

    Args:
        folder: for the tables; each is deleted when its case is over.
        readers: who is asked.
        writer: makes a writer of a path and a shape.
        portray: what is kept of a table: a function of its path.
    """

    def __init__(self, folder, readers=PLAIN, writer=Arrow, portray=None):
        self._folder, self._readers, self._writer, self._number = folder, readers, writer, 0
        self._portray = portray

    def run(self, case, most=1):
        """The outcome of a case; no reader is asked any more behind `most` differences."""
        self._number += 1
        path = f"{self._folder}/t{self._number}"
        outcome, writer = Outcome(), self._writer(path, case.shape)
        asked = Asked(path, Model(case.shape))
        try:
            if all(self._step(step, writer, asked, outcome) for step in case.steps) and asked.model.states:
                writer.stop()
                self._check(case, path, outcome)
                self._ask_all(case, asked, outcome, most)
                outcome.portrait = self._portray and self._portray(path)
        except AmbiguousError as error:
            outcome.undefined = str(error)
        finally:
            writer.stop()
            for made in (path, path + "-rows"):
                shutil.rmtree(made, ignore_errors=True)
        return outcome

    def _step(self, step, writer, asked, outcome):
        """Whether the history goes on."""
        model = asked.model
        if not step.writes and not model.states:
            return True
        refuses = step.writes and model.refuses(step)
        if step.writes and not refuses:
            model.apply(step)
        try:
            writer.do(step)
        except oracle.HudiError as error:
            return self._gave_up(step, error, asked, outcome)
        except Exception as error:
            if not self._failed(step, error, refuses, outcome):
                return False
            return not model.states or self._agrees(Question(), step, asked, outcome)  # nothing of it is visible
        if refuses:
            outcome.differences.append(Difference(writer.name, step, "a refusal", "it was done"))
            return False
        outcome.counts[writer.name_of(step), step.what] += 1
        model.serve(step)
        if step.writes and not writer.made_commit:
            model.made_nothing(step.number)
        self._learn_time(step, asked)
        kept = {one: number for one, number in model.saved.items() if number in asked.times}
        asked.kept = {number for one, number in kept.items() if asked.times[number][0] == writer.savepoints[one]}
        return self._agrees(Question(), step, asked, outcome)

    def _gave_up(self, step, error, asked, outcome):
        """Real Hudi did not write: the case says no more, and the table is as it was."""
        del asked.model.states[step.number]
        cause = _told(error).splitlines()[-1]
        outcome.counts[f"Hudi {step.by} as a writer", f"failed: {step.what}: {cause[:150]}"] += 1
        outcome.undefined = f"real Hudi did not write: {cause}"
        if asked.model.states:
            self._agrees(Question(), step, asked, outcome)
        return False

    def _failed(self, step, error, refuses, outcome):
        refused = isinstance(error, HudiError)
        known = find_known("writer", step, error)
        if known or (refused and (refuses or not step.writes) and not _is_fault(error)):
            outcome.counts["refused", known or step.what] += 1
            if known and step.writes:
                outcome.undefined = known
            return not known
        outcome.differences.append(Difference("writer", step, "it is done", _told(error)))
        return False

    def _learn_time(self, step, asked):
        table = HudiTable.open(asked.path)
        writes = table.load_timeline().completed_writes
        newest = writes[-1].time if writes else None
        known = {times[0] for times in asked.times.values()}
        if step.what == "roll_back":
            number = max(asked.times, default=None)  # older ones may be in the archive
            if number is not None and asked.times[number][0] not in {write.time for write in writes}:
                asked.model.roll_back(number)
                del asked.times[number]
        elif step.what == "restore":
            asked.times = {number: times for number, times in asked.times.items() if number in asked.model.states}
        elif step.writes and newest is not None and newest not in known:
            asked.times[step.number] = newest, table.newest_instant

    def _agrees(self, question, step, asked, outcome):
        """After each step the whole table is read once."""
        try:
            found = PLAIN[0].ask(asked, question)
        except Exception as error:
            outcome.differences.append(Difference("scan", step, "rows", _told(error)))
            return False
        expected = asked.model.answer(question)
        if found != expected:
            outcome.differences.append(Difference("scan", step, *_apart(expected, found)))
        return found == expected

    def _check(self, case, path, outcome):
        """`HudiTable.check`: what files, lists, statistics and indexes say of each other."""
        report = HudiTable.open(path).check()
        if report.is_sound:
            outcome.counts["check", "sound"] += 1
        else:
            told = [f"{one.kind.value}: {one.where}: {one.text}" for one in report.findings if one.severity != "note"]
            error = "; ".join(told)
            known = find_known("check", (case, None), error)
            if known:
                outcome.counts["check", known] += 1
            else:
                outcome.differences.append(Difference("check", "the table", "it is sound", error[:1500]))

    def _ask_all(self, case, asked, outcome, most):
        done = {step.what for step in case.steps}
        for question in case.questions:
            if (question.since or question.until) and "convert" in done:
                continue  # a range counts by other times in the other version
            gone = {question.as_of, question.since, question.until} - {None, 0} - set(asked.times)
            if gone or {question.as_of, question.until} - {None} - set(asked.model.states):
                continue
            kinds = set(asked.state(question).kinds)  # none behind an empty commit
            if not kinds or not set(question.columns or ()) | question.asked <= kinds:
                continue
            loses = bool(done & set(LOSES_HISTORY)) and (question.as_of not in asked.kept or "convert" in done)
            for reader in self._readers:
                self._ask(reader, question, case, asked, outcome, may_refuse=loses)
                if len(outcome.differences) >= most:
                    return

    def _ask(self, reader, question, case, asked, outcome, *, may_refuse):
        try:
            is_past = question.as_of is not None or question.since is not None
            if is_past and may_refuse and not reader.refuses_lost:
                raise UnaskedError
            found = reader.ask(asked, question)
        except UnaskedError:
            outcome.counts[reader.name, "unasked"] += 1
            return
        except Exception as error:
            known = find_known(reader.name, (case, question), error)
            if known or _may_refuse(reader, question, error, may_refuse, virtual=case.shape.virtual):
                outcome.counts[reader.name, known or "refused"] += 1
            else:
                outcome.differences.append(Difference(reader.name, question, "rows", _told(error)))
            return
        expected = asked.model.answer(question, reader.meaning)
        known = None if found == expected else find_known(reader.name, (case, question), None)
        if found == expected or known:
            outcome.counts[reader.name, known or "right"] += 1
        else:
            outcome.differences.append(Difference(reader.name, question, *_apart(expected, found)))


def _is_fault(error):
    return type(error).__name__ in ("CorruptFileError", "TaskFailedError", "BrokenInvariantError", "LostDataError")


def _may_refuse(reader, question, error, loses, *, virtual):
    if reader.name == "to_dataset":
        return isinstance(error, (UnsupportedTableError, InvalidConfigError))
    if question.keys is not None:
        return isinstance(error, UnsupportedTableError)
    if virtual and question.since is not None and question.feed is None:
        return isinstance(error, (UnsupportedTableError, InvalidConfigError))  # rows do not say which commit wrote them
    past = question.as_of is not None or question.since is not None
    return past and loses and isinstance(error, InvalidConfigError)


def _told(error):
    """An error without the folders of this machine: results are committed. Of a JVM, its causes."""
    lines = str(error).splitlines() or [""]
    causes = [line for line in lines if line.startswith(("Caused by:", "java.", "org.apache.", ": java.", ": org."))]
    told = "\n".join(dict.fromkeys(causes)) if lines[0].startswith("Traceback") and causes else str(error)
    return re.sub(r"(/[\w.+-]+)+/", "", f"{type(error).__name__}: {told}")[:1500]


def _apart(expected, found):
    """Rows that are missing, and rows that are too many: each as often as it is."""
    wanted, seen = Counter(map(repr, expected)), Counter(map(repr, found))
    return sorted((wanted - seen).elements())[:5], sorted((seen - wanted).elements())[:5]
