"""Watches that no other process decides the end of a young commit while its writer lives (rule 14)."""

import re

from table.options.groups import HeartbeatSettings

from .actors import BASE

_EXPIRY_MS = HeartbeatSettings(interval_ms=int(BASE["hoodie.client.heartbeat.interval_in_ms"])).expiry_ms
_BEAT = re.compile(r"\.hoodie/\.heartbeat/(\d{17})")
_REQUEST = re.compile(r"\.hoodie/(?:timeline/)?(\d{17})\.(?:commit|deltacommit|replacecommit)\.requested")
_END = re.compile(r"\.hoodie/\.hudistream/ends/(\d{17})\.(?:commit|deltacommit|replacecommit)")


class Living:
    """Listens to the calls of a world whose streams share the table.

    No honest judge takes the writer of a commit for dead whose heartbeat is younger than its expiry. It is older than
    the request, and the writer may have stood still in between. A requested service is different: any writer may
    execute it. A judge that has just stood still is excused: its lease may have expired.
    """

    def __init__(self, world, disk):
        self._world, self._disk, self._writers, self._beats = world, disk, {}, {}
        disk.watchers.append(self.on_call)

    def on_call(self, verb, path, process):
        """Remembers who requested an instant. Judges who decides its end: who creates the end record."""
        if verb != "create" or process is None:
            return
        beat, request, end = (pattern.fullmatch(path) for pattern in (_BEAT, _REQUEST, _END))
        if beat is not None:
            self._beats[beat[1]] = self._world.now_ms
        elif request is not None:
            self._writers[request[1]] = process, self._beats.get(request[1], self._world.now_ms)
        elif end is not None and path not in self._disk.files and end[1] in self._writers:
            (writer, begun_ms), now_ms = self._writers[end[1]], self._world.now_ms
            stood_still = now_ms - process.paused_until < _EXPIRY_MS
            lives = writer.writes_on and not writer.killed and now_ms - begun_ms < _EXPIRY_MS
            lives = lives and f".hoodie/.heartbeat/{end[1]}" in self._disk.files  # else it has given up
            if process is not writer and lives and not stood_still:
                self._world.violate(f"{process.name} ends {end[1]} of {writer.name}, which lives")
