"""The plan that the tasks of a batch get, and the decisions that lead to it.

`bucket_assigner.py` decides which file a new row goes to, `routes.py` which task. What a task needs to know of a new
index goes into `ChangePlan` in `task_plan.py`, and is filled in by `plan_tasks.py`.
"""
