"""The transaction of one commit: lease, locks, conflicts, completion.

How long a sign of life counts is `HeartbeatSettings.expiry_ms` in `table.options.groups`; whether it still does,
`still_counts` in `signs.py` says for leases, heartbeats, members and archivals. `may_take_over` in `lease.py`
decides who gets the table, `liveness.py` whether a writer may be undone.
"""
