"""Replaces files on the condition that no other writer has replaced them: conditional requests, or a kernel lock.

==========  ==================================================================================================
backend     how
==========  ==================================================================================================
S3          the version is the object's ETag; ``If-Match`` and ``If-None-Match: *`` of PutObject
local disk  the version is a digest of the content; a kernel lock (``flock``) on a file beside it holds off others
others      refused
==========  ==================================================================================================
"""

from typing import NamedTuple

from table.errors import InvalidConfigError

REQUEST_TIMEOUT_S = 60.0


class VersionedFile(NamedTuple):
    """A file as it was at one moment.

    Attributes:
        data: its content.
        version: the store's identifier of this content; every replacement of the file changes it.
    """

    data: bytes
    version: str


class VersionedFiles:
    """The part of a store that handles versions of files.

    Attributes:
        base_uri: the table's address.
    """

    base_uri: str

    @property
    def has_versions(self) -> bool:
        """Whether this store can replace a file on the condition that no other writer has replaced it."""
        return False

    @property
    def keeps_conditions(self) -> bool:
        """Whether the store is known to heed conditions. A server with S3's protocol may ignore a header."""
        return False

    def read_versioned(self, path: str, timeout_s: float = REQUEST_TIMEOUT_S) -> VersionedFile | None:  # noqa: ARG002
        """A file with its version; None if the file does not exist.

        Args:
            path: relative to the table.
            timeout_s: seconds after which the answer no longer counts.

        Raises:
            InvalidConfigError: the store has no versions.
            StorageError: the store fails, or gives no answer in time.
        """
        raise InvalidConfigError(
            f"the store of {self.base_uri!r} cannot replace {path!r} on the condition that no other writer has "
            "done so: use a table on S3 or on a local disk"
        )

    def replace_if(
        self,
        path: str,
        data: bytes,
        version: str | None,
        timeout_s: float = REQUEST_TIMEOUT_S,  # noqa: ARG002
    ) -> str | None:
        """Replaces a file if it still has this version.

        Args:
            path: relative to the table.
            data: the new content.
            version: the last version from `read_versioned` or this method; None creates the file if it is absent.
            timeout_s: seconds after which the answer no longer counts.

        Returns:
            The new version; None if the file has another version and was not replaced.

        Raises:
            InvalidConfigError: the store has no versions.
            StorageError: the store fails, or gives no answer in time; whether the file was replaced is not known.
        """
        raise InvalidConfigError(
            f"the store of {self.base_uri!r} cannot write {len(data)} bytes of {path!r} on the condition that its "
            f"version is {version!r}: use a table on S3 or on a local disk"
        )
