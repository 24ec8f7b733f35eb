"""What change files hold, by the properties of a table."""

import pytest

from table.config.change_images import ChangeImages, images_in
from table.errors import UnsupportedTableError

MODE = "hoodie.table.cdc.supplemental.logging.mode"


@pytest.mark.parametrize(
    ("properties", "images"),
    [
        ({}, None),
        ({"hoodie.table.cdc.enabled": "false", MODE: "DATA_BEFORE"}, None),
        ({"hoodie.table.cdc.enabled": "True"}, ChangeImages.DATA_BEFORE_AFTER),
        ({"hoodie.table.cdc.enabled": "true", MODE: "op_key_only"}, ChangeImages.OP_KEY_ONLY),
        ({"hoodie.table.cdc.enabled": "true", MODE: "DATA_BEFORE"}, ChangeImages.DATA_BEFORE),
    ],
)
def test_properties_say_it(properties, images):
    assert images_in(properties) is images


def test_a_mode_that_is_not_known_is_refused_by_name():
    with pytest.raises(UnsupportedTableError, match=f"{MODE}=ALL: OP_KEY_ONLY, DATA_BEFORE, DATA_BEFORE_AFTER"):
        images_in({"hoodie.table.cdc.enabled": "true", MODE: "ALL"})
