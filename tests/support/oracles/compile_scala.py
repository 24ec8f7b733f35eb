"""Scala for the JVM of the tests, compiled with the compiler that Spark brings."""

import os
import subprocess
from pathlib import Path


def compile_scala(source, target, jars):
    """Compiles a source file beside this one into a JAR.

    Args:
        source: its name.
        target: path of the JAR.
        jars: what it is compiled against.
    """
    import pyspark

    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    compiler = str(Path(pyspark.__file__).with_name("jars") / "*")
    command = [java, "-cp", compiler, "scala.tools.nsc.Main", "-usejavacp", "-nowarn"]
    command += ["-classpath", os.pathsep.join(map(str, jars)), "-d", str(target)]
    done = subprocess.run(
        [*command, str(Path(__file__).with_name(source))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
