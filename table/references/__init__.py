"""What the records of a table say of its data files: which are named, undone, left over, gone."""
