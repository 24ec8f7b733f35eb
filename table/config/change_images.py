"""What change files hold of a row (pure; HoodieCDCSupplementalLoggingMode)."""

from collections.abc import Mapping

from table.config.choice import Choice
from table.errors import UnsupportedTableError

CDC_KEY = "hoodie.table.cdc.enabled"
IMAGES_KEY = "hoodie.table.cdc.supplemental.logging.mode"


class ChangeImages(Choice):
    """``hoodie.table.cdc.supplemental.logging.mode``: which images of a changed row its change file holds."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    DATA_BEFORE = "DATA_BEFORE"
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"


def images_in(properties: Mapping[str, str]) -> ChangeImages | None:
    """What the change files of a table hold by its properties; None: it has none.

    Raises:
        UnsupportedTableError: the properties name something else.
    """
    if properties.get(CDC_KEY, "false").strip().lower() != "true":
        return None
    named = properties.get(IMAGES_KEY, ChangeImages.DATA_BEFORE_AFTER.value).strip()
    for images in ChangeImages:
        if images.value == named.upper():
            return images
    raise UnsupportedTableError(f"the table has {IMAGES_KEY}={named}: {', '.join(ChangeImages)} are known")
