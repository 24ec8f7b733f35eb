"""The version of this project, which its own records below ``.hoodie`` name."""

import json

VERSION = "0.2.0"
# the content of a file whose name and age say everything
SIGN = json.dumps({"version": VERSION}).encode()
