"""Describes the contents of a table, and what a writer would do with it.

A finding of `health` is judged in `judge_health.py`, and has a code in `health_facts.py`. What it looks at stands in
`table.services.probes`, which `doctor` asks, too.
"""
