"""A machine that finds wrong answers: random histories, judged by a table in memory and by every supported reader."""
