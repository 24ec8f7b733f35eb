"""Keeps a worker from reading its zipped libraries again for every task (runs on a worker).

Before each task Spark's worker calls ``importlib.invalidate_caches()``. Until Python 3.13 each finder of an archive
answers by reading the list of its files again. Spark starts its workers with ``pyspark.zip``, py4j's archive and the
JAR of its core on PYTHONPATH, also where pyspark was installed by pip.
"""

import os
import sys


def forget_finders(python_path: str | None = None) -> None:
    """Removes Python's finders for the archives that this process was started with.

    A new finder uses the file list that Python has cached, and does not read the archive. So no archive is read again,
    and a changed archive is not noticed while the process lives. Archives that Spark adds for a task (``--py-files``)
    are not on PYTHONPATH, and their finders stay.

    Args:
        python_path: as the environment variable; None: that of this process.
    """
    entries = (os.environ.get("PYTHONPATH", "") if python_path is None else python_path).split(os.pathsep)
    archives = tuple(entry for entry in entries if entry and os.path.isfile(entry))
    inside = tuple(archive + os.sep for archive in archives)
    for path in list(sys.path_importer_cache):
        if path in archives or path.startswith(inside):
            sys.path_importer_cache.pop(path, None)
