"""Real Hudi that reaches a server which speaks S3, with what hudi-aws would add to its storage-based lock."""

from pathlib import Path

from oracles.compile_scala import compile_scala
from oracles.hudi import Hudi


def hadoop_version():
    """That of the installed Spark."""
    import pyspark

    [jar] = Path(pyspark.__file__).with_name("jars").glob("hadoop-client-api-*.jar")
    return jar.stem.rpartition("-")[2]


def with_s3_client(hudi, folder):
    """Gives it the client of the storage-based lock; a lock says in `test.s3.endpoint` where the server is.

    Args:
        hudi: real Hudi.
        folder: for the compiled client.
    """
    made = folder / "s3-client.jar"
    compile_scala("S3StorageLockClient.scala", made, [jar.removeprefix("file://") for jar in hudi.jars()])
    hudi.add_jar(made)
    return hudi


def hudi_on_s3(version, address, folder):
    """Real Hudi that reads and writes `s3a://`. The first time fetches the SDK of AWS, 280 MB.

    Args:
        version: Hudi's.
        address: the server's.
        folder: for the compiled client.
    """
    hudi = with_s3_client(Hudi(version, [f"org.apache.hadoop:hadoop-aws:{hadoop_version()}"]), folder)
    hudi.set_hadoop(
        {
            "fs.s3a.endpoint": address,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
            "fs.s3a.access.key": "test",
            "fs.s3a.secret.key": "test",
        }
    )
    return hudi
