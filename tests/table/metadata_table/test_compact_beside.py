"""A compaction of the metadata table waits for actions whose delta commits may come before it, or be taken back."""

import shutil

import pytest
from faults import FaultyStorage, Fuse, PowerCut, dying_process
from indexed_crash import FIRST, SECOND, build, written

from table.config.table_config import load_table_config
from table.hudi_table import HudiTable
from table.metadata_table.compact import Compaction, compact_lists
from table.metadata_table.metadata_table import MetadataTable
from table.options.groups import CleanSettings
from table.services.clean.clean import clean
from table.storage.local import LocalStorage
from table.timeline.instant import Action, State
from table.timeline.layout import name_instant

FORMS = [(6, "COPY_ON_WRITE"), (8, "COPY_ON_WRITE")]
# a record index lets compactions come later
WITHOUT_INDEX = {"hoodie.metadata.record.index.enable": "false", "hoodie.index.type": "BLOOM"}


def clean_table(path, fuse):
    storage = FaultyStorage(LocalStorage(path), fuse)
    clean(HudiTable(storage, load_table_config(storage)), CleanSettings(commits_retained=1, grace_ms=0))


@pytest.fixture(scope="module", params=FORMS, ids=str)
def form(request):
    return request.param


@pytest.fixture(scope="module")
def whole(form, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("beside") / "t")
    for number in range(3):
        written(build(path, *form, **WITHOUT_INDEX), number, FIRST)
    return path


def compacted(path, storage=None):
    """What a compaction answers that is due with the first delta commit."""
    storage = storage or LocalStorage(path)
    return compact_lists(storage, HudiTable(storage, load_table_config(storage)).load_timeline(), 1)


def stopped(whole, tmp_path, act, is_there):
    """A copy of the table in which `act` was stopped behind the first call that is meant."""
    counted = shutil.copytree(whole, str(tmp_path / "counted"))
    fuse = Fuse()
    act(counted, fuse)
    at = next(number for number, call in enumerate(fuse.calls, 1) if is_there(call))
    path = shutil.copytree(whole, str(tmp_path / "t"))
    with pytest.raises(PowerCut), dying_process():
        act(path, Fuse(at, after=True))
    return path


def test_nothing_hinders_it(whole, tmp_path):
    path = shutil.copytree(whole, str(tmp_path / "t"))
    assert compacted(path) is Compaction.DONE


def test_an_end_that_is_decided_and_not_visible_hinders_it(whole, form, tmp_path):
    """The delta commit of that action may come, and lie before the compaction."""
    path = stopped(
        whole, tmp_path, lambda path, fuse: build(path, *form, fuse, **WITHOUT_INDEX).write(3, SECOND),
        lambda call: call.startswith("create_exclusive .hoodie/.hudistream/ends/"),
    )  # fmt: skip
    assert not MetadataTable.open(LocalStorage(path)).load_timeline().pending
    assert compacted(path) is Compaction.HINDERED


def test_an_action_that_goes_on_hinders_it(whole, tmp_path):
    """Its delta commit is complete, and may be taken back."""
    path = stopped(
        whole, tmp_path,
        clean_table,
        lambda call: call.startswith("create_exclusive") and call.endswith(".deltacommit"),
    )  # fmt: skip
    timeline = HudiTable.open(path).load_timeline()
    assert timeline.pending_of(Action.CLEAN)
    assert compacted(path) is Compaction.HINDERED


class Meanwhile(LocalStorage):
    """A store in which a delta commit of the metadata table is requested as soon as its compaction is."""

    def create_exclusive(self, path, data, *, durable=False):
        made = super().create_exclusive(path, data, durable=durable)
        if path.endswith("compaction.requested"):
            own = MetadataTable.open(LocalStorage(self.base_uri.removesuffix("/.hoodie/metadata")))
            later = name_instant(own.layout, "99990101000000000", Action.DELTA_COMMIT, State.REQUESTED)
            own.storage.create_exclusive(later.path, b"")
        return made


def test_a_delta_commit_that_came_meanwhile_takes_the_request_back(whole, tmp_path):
    path = shutil.copytree(whole, str(tmp_path / "t"))
    assert compacted(path, Meanwhile(path)) is Compaction.HINDERED
    assert not MetadataTable.open(LocalStorage(path)).load_timeline().pending_of(Action.COMPACTION)
