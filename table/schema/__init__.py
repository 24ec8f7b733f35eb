"""Table columns in Arrow and Avro form, and the changes that schemas allow."""
