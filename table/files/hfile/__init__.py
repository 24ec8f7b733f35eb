"""HFile, the sorted key-value file of HBase, as Hudi's metadata table uses it."""
