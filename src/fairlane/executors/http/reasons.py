"""Why there was no answer, in words that hold no URL: aiohttp's own may tell the query."""

import aiohttp

from fairlane.executors.http.reach import AddressRefused


def reason(error: BaseException) -> str:
    match error:
        case aiohttp.ClientConnectorDNSError() if isinstance(error.os_error, AddressRefused):
            return f"was not made: {error.os_error.strerror}"
        case aiohttp.ClientConnectorDNSError():
            return f"found no address of its host: {error.os_error.strerror or 'unknown name'}"
        case aiohttp.ClientConnectorCertificateError():
            return f"got a certificate that is not trusted: {error.certificate_error}"
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, AddressRefused):
            return f"was not made: {error.os_error.strerror}"
        case aiohttp.ClientConnectorError():
            return f"could not connect: {error.os_error.strerror or error.os_error}"
        case aiohttp.ServerDisconnectedError():
            return "got no answer: the connection was closed"
        case aiohttp.ClientPayloadError():
            return "got half an answer: the connection was closed"
        case aiohttp.ClientResponseError():
            return f"got an answer that is not HTTP: {error.message[:200]}"
        case OSError():
            return f"lost its connection: {error.strerror or type(error).__name__}"
        case _:
            return f"failed: {type(error).__name__}"
