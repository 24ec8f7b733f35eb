"""Names the store of a table, and the identity that asks it, for the errors of a store (pure).

A store answers "403" or "no such container" and names neither the bucket nor the account. One of three things is wrong:
the table's address, the endpoint, or the credentials. The error names all three.
"""

import errno
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_S3, _AZURE, _GCS = ("s3", "s3a"), ("abfs", "az", "adl"), ("gs", "gcs")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "InvalidBucketName", "FilesystemNotFound")
_RUN_OUT = ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired")
_DENIED = (
    "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", *_RUN_OUT, "InvalidToken",
    "AuthenticationFailed", "AuthorizationFailure", "AuthorizationPermissionMismatch",
    "InvalidAuthenticationInfo",
)  # fmt: skip
_DENIED_STATUS = (401, 403)
# a key that was deleted answers as one that never was; the answer to HEAD has no body, and so no other code than 400
_EXPIRED = (*_RUN_OUT, "InvalidToken", "InvalidAccessKeyId", "400")
COLLISIONS = ("ConditionalRequestConflict", "OperationAborted")  # 409: another request for the object is under way
_ELSEWHERE = ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException")
_NO_IDENTITY = ("NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError", "ClientAuthenticationError")
_NO_ANSWER = (
    "EndpointConnectionError", "ConnectTimeoutError", "ClientConnectorError", "ClientConnectorDNSError",
    "ServiceRequestError", "ConnectionRefusedError", "ConnectionError",
)  # fmt: skip
_IS_DENIED = "the store denies access: correct the credentials, or grant this identity the rights to read and write"
_HAVE_EXPIRED = (
    "the credentials have expired: renew them where this process finds them (environment, profile, role), and the next "
    "request takes them; storage_options are those of the sink or reader: make a new one with others"
)
_SHOWN = 4  # characters of an access key that an error shows at either end


@dataclass(frozen=True)
class Reach:
    """How a table's store is reached.

    Attributes:
        bucket: the bucket or container.
        endpoint: the address of the store.
        identity: the account, key or profile that asks; it holds no secret.
    """

    bucket: str
    endpoint: str
    identity: str

    def __str__(self) -> str:
        return f"bucket {self.bucket!r} at {self.endpoint} as {self.identity}"


def reach_of(
    protocol: str, root: str, options: Mapping[str, Any], environment: Mapping[str, str], sent: str | None = None
) -> Reach | None:
    """How a store is reached (pure); None for an unknown backend.

    Args:
        protocol: fsspec's name of the backend.
        root: the table's address without its scheme.
        options: the options of fsspec's file system.
        environment: the variables of the process. From them a client takes the settings that the options leave out.
        sent: the access key id that was sent to S3, if it is known: the environment may have another one now.
    """
    bucket = root.strip("/").partition("/")[0]
    if protocol in _S3:
        return Reach(bucket, *_s3(options, environment, sent))
    if protocol in _AZURE:
        return Reach(bucket, *_azure(options, environment))
    if protocol in _GCS:
        return Reach(bucket, *_gcs(options, environment))
    return None


def why_refused(error: BaseException) -> str | None:
    """What the store's answer means, and what to do (pure); None: the cause may be anything.

    Args:
        error: the client's error, with its causes. Give a FileNotFoundError only if the file was to be created, or if
            the store said that the bucket is missing.
    """
    causes = tuple(_causes(error))
    codes = {code_of(error), *(str(getattr(cause, "error_code", "")) for cause in causes)}
    kinds = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    status = {getattr(cause, "status_code", None) or getattr(cause, "code", None) for cause in causes}
    text = str(error).lower()
    if codes & set(_NO_BUCKET) or "bucket does not exist" in text or isinstance(error, FileNotFoundError):
        return "there is no such bucket: create it, or correct the table's address"
    if codes & set(_ELSEWHERE):
        return "the bucket lies in another region: name it, for S3 with client_kwargs={'region_name': …} or AWS_REGION"
    if kinds & set(_NO_IDENTITY) and not status & set(_DENIED_STATUS):
        return "no credentials were found: give storage_options, or set the store's environment variables"
    if codes & set(_DENIED) or status & set(_DENIED_STATUS) or "PermissionError" in kinds:
        return _HAVE_EXPIRED if codes & set(_RUN_OUT) else _IS_DENIED
    if kinds & set(_NO_ANSWER):
        return "nothing answers there: correct the endpoint, or wait until the store is back"
    return None


def are_expired(error: BaseException) -> bool:
    """Whether the store no longer takes the credentials that were sent, so that others may do (pure)."""
    return code_of(error) in _EXPIRED


def is_unmet(error: BaseException) -> bool:
    """Whether a store refused to create a file because the file exists (pure).

    Args:
        error: with the client's error as its cause; s3fs raises EINVAL for "precondition failed".
    """
    return getattr(error.__cause__, "errno", None) == errno.EINVAL or "PreconditionFailed" in str(error.__cause__)


def is_collision(error: BaseException) -> bool:
    """Whether a store refused a request only because another request for the file was under way (pure)."""
    return code_of(error) in COLLISIONS or any(code in str(error.__cause__) for code in COLLISIONS)


def code_of(error: BaseException | None) -> str:
    """S3's code of an error; "" if S3 did not answer."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
        error = error.__cause__
    return ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _shortened(identifier: str) -> str:
    if len(identifier) <= 2 * _SHOWN:
        return identifier
    return f"{identifier[:_SHOWN]}…{identifier[-_SHOWN:]}"


def _s3(options: Mapping[str, Any], environment: Mapping[str, str], sent: str | None) -> tuple[str, str]:
    client = {**(options.get("client_kwargs") or {})}
    region = client.get("region_name") or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    endpoint = (
        options.get("endpoint_url")
        or client.get("endpoint_url")
        or environment.get("AWS_ENDPOINT_URL_S3")
        or environment.get("AWS_ENDPOINT_URL")
        or f"AWS {region or '(no region set)'}"
    )
    key = sent or options.get("key") or client.get("aws_access_key_id") or environment.get("AWS_ACCESS_KEY_ID")
    profile = options.get("profile") or environment.get("AWS_PROFILE")
    if options.get("anon"):
        return endpoint, "an anonymous client"
    if key:
        return endpoint, f"access key {_shortened(str(key))}"
    return endpoint, f"profile {profile}" if profile else "the credentials of this machine"


def _azure(options: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[str, str]:
    text = options.get("connection_string") or environment.get("AZURE_STORAGE_CONNECTION_STRING") or ""
    parts = dict(part.split("=", 1) for part in str(text).split(";") if "=" in part)
    account = options.get("account_name") or parts.get("AccountName") or environment.get("AZURE_STORAGE_ACCOUNT_NAME")
    endpoint = options.get("account_host") or parts.get("BlobEndpoint")
    if not endpoint:
        endpoint = f"https://{account}.blob.core.windows.net" if account else "Azure (no account named)"
    if options.get("client_id") or environment.get("AZURE_STORAGE_CLIENT_ID"):
        return str(endpoint), f"client {options.get('client_id') or environment['AZURE_STORAGE_CLIENT_ID']}"
    return str(endpoint), f"account {account}" if account else "the credentials of this machine"


def _gcs(options: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[str, str]:
    endpoint = (
        options.get("endpoint_url") or environment.get("STORAGE_EMULATOR_HOST") or "https://storage.googleapis.com"
    )
    token = options.get("token") or environment.get("GOOGLE_APPLICATION_CREDENTIALS")
    if token == "anon":  # noqa: S105 gcsfs' word for no credentials
        return str(endpoint), "an anonymous client"
    names = isinstance(token, str) and token.endswith(".json")
    return str(endpoint), f"the key file {token}" if names else "the credentials of this machine"
