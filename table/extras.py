"""The extras of hudistream, and the command that installs what one of them needs (pure).

The command names the packages of the extra, and never hudistream itself. No package index is known to have a package of
that name, and whoever registers the name there could put anything under it. The packages of an extra are the same,
however hudistream was installed: from a wheel, a checkout, or sent along to a cluster.
"""

# as pyproject.toml has them; tests/table/test_extras.py compares
PACKAGES = {
    "spark": ("pyspark>=3.5,<5", "pandas>=2.0,<3"),
    "cli": ("rich>=13",),
    "metrics": ("prometheus-client>=0.20",),
    "s3": ("s3fs>=2024.12",),
    "gcs": ("gcsfs>=2024.12",),
    "azure": ("adlfs>=2024.12",),
    "pandas": ("pandas>=2.0",),
    "polars": ("polars>=1.33",),
    "duckdb": ("duckdb>=1.0",),
    "zookeeper": ("kazoo>=2.10",),
    "dynamodb": ("boto3>=1.35",),
    "glue": ("boto3>=1.35",),
    "hms": ("pymetastore>=0.4",),
    "kafka": ("confluent-kafka>=2.5",),
}
# protocol of fsspec -> the extra that brings its file system
OF_PROTOCOL = {"s3": "s3", "gs": "gcs", "gcs": "gcs", "abfs": "azure", "az": "azure"}


def needs_extra(what: str, extra: str) -> str:
    """A sentence for an error: what needs which extra, and the command that installs it.

    Args:
        what: the subject of the sentence, such as ``to_polars()``.
        extra: one of `PACKAGES`.
    """
    packages = " ".join(f"'{package}'" for package in PACKAGES[extra])
    return f"{what} needs the extra {extra!r}: pip install {packages}"
