"""Clustering.

Plan and order are pure; `cluster_group.py` sorts rows; `scheduling.py` and `execution.py` are the two halves of a
clustering that was planned before; `command.py` is for operators, `service.py` and
`streaming.batch.inline_clustering` for streams.
"""
