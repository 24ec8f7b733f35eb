"""The transaction of one commit: lease, locks, conflicts, completion.

How long a hold counts is `HeartbeatSettings.expiry_ms` in `table.options.groups`. Its age is judged by
`may_take_over` in `lease.py` for the lease, in `holder.py` for tools, in `heartbeat.py` for instants, and in
`membership.py` for several writers; archival's turn in `table.services.archival.turn`. Whether a writer may be
undone: `liveness.py` (pure).
"""
