"""What needs pyspark: distribution of rows, the session, schemas."""
