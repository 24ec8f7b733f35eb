"""Bad rows beside the table: where they lie, how they are read, and which of them were replayed."""
