"""Catalogs: where query engines look a table up. What is registered there is what Hudi's own sync registers."""
