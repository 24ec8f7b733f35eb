"""The log of a Delta table over the base files of a Hudi table, for engines that read Delta."""
