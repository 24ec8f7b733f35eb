"""The modules that need pyspark: distribution of rows, the session, schemas."""
