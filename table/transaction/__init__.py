"""The transaction of one commit: lease, locks, conflicts, completion.

How long a sign of life counts is `HeartbeatSettings.expiry_ms` in `table.options.groups`; whether it still does,
`still_counts` in `signs.py` says for leases, heartbeats and members. `may_take_over` in `lease.py` decides who gets the
table, `liveness.py` whether a writer may be undone. The holder stops itself earlier, at three quarters of that time
(`Lease.check`). Archival has a time of its own in `table.services.archival.turn`, and `table.inspect.doctor` shows what
is left.

Lock providers stand in `locks/`; `lock.py` takes the lock.
"""
