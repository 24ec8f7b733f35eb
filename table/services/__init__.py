"""Upkeep.

A new service is a folder or a module here, with a class that follows the protocol in `service.py`. `after_commit.py`
lists the services that run after a commit, in their order. A service that may only plan while nothing is written sets
`plans_between_batches`. What it counts goes into `ServiceOutcome` and `streaming.batch.upkeep_summary`.
"""
