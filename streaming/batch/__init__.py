"""One micro-batch after another, on the driver.

`micro_batch.py` is the page to read first: a batch from its arrival to its summary. `begin_batch.py` and
`commit_batch.py` are its two halves. A new check of a batch before it is planned goes into `agreement.py`; what users
are to know of it into `upkeep_summary.py` or `streaming.metrics`. `services.py` starts the services that follow a
commit, `service_run.py` beside it runs them.
"""
