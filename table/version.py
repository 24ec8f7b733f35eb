"""The version of this project, which leases and end records name."""

VERSION = "0.1.0"
