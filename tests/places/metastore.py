"""A Hive metastore with an address of its own: version 2.3.9, of the JARs that the PySpark wheel brings, on Derby."""

import subprocess
from contextlib import contextmanager
from pathlib import Path

import pyspark
from servers import free_port, java, wait_for

OPENED = ("java.net", "java.lang")


@contextmanager
def serve_metastore(folder, class_path="", port=None, **settings):
    """Yields the address of a metastore, and its process.

    Args:
        folder: for its configuration, its catalog, its warehouse and its log. If it holds a catalog, that one is used.
        class_path: of JARs that it needs beside those of PySpark.
        port: its port; None: a free one.
        settings: of Hadoop, with underscores for dots.
    """
    port = port or free_port()
    folder = Path(folder)
    for name in ("conf", "warehouse"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    settings = {
        "hive.metastore.warehouse.dir": f"file:{folder}/warehouse",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.disallow.incompatible.col.type.changes": "false",
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:{folder}/catalog;create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.async.log.enabled": "false",
        "hive.stats.autogather": "false",
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    properties = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items())
    (folder / "conf" / "hive-site.xml").write_text(f"<configuration>{properties}</configuration>")
    log = folder / "metastore.log"
    with open(log, "wb") as told:
        process = subprocess.Popen(
            [
                java(), "-Xmx512m", "-XX:+UseSerialGC", f"-Dderby.stream.error.file={folder}/derby.log",
                *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
                "-cp", f"{folder}/conf:{Path(pyspark.__file__).parent}/jars/*:{class_path}",
                "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port),
            ],
            cwd=folder, stdout=told, stderr=told,
        )  # fmt: skip
    try:
        wait_for(port, process, log)
        yield f"thrift://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait()
