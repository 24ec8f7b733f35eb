"""Record key and partition path of a row."""
