"""The modules that need pyspark: distribution of rows, the session, schemas.

Stateful operators and joins upstream of a sink (`transformWithState`, `dropDuplicates`) need nothing here: the sink
sees one DataFrame per batch. `environment.py` asks the workers first, and `carried.py` wraps each task.
"""
