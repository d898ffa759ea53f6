"""The errors of outbound calls, with stable codes.

    OutboundError
    ├── OutboundRefused     not sent; the URL or the request must change
    │   ├── too_long        more than 2000 characters
    │   ├── characters      control characters, spaces, non-ASCII, a broken % escape
    │   ├── scheme          not https (nor http under the development switch or in a listed network)
    │   ├── userinfo, query, fragment
    │   ├── host            empty, malformed, or an unusual form of a number (127.1, 0x7f000001)
    │   ├── port            not 443, unless the policy allows any
    │   ├── address         link-local, metadata, loopback ..., typed or resolved
    │   └── header          a request header that cannot be sent
    └── OutboundFailed      allowed, but failed; the provider or the network must change
        ├── dns             no such name, no address, or too many lookups running
        ├── connect         connection refused, or no route
        ├── tls             the certificate or the encryption was not accepted
        ├── ca_bundle       the operator's bundle cannot be read
        ├── timeout         the connection or the whole call took too long
        ├── redirected      3xx; never followed
        ├── encoded         a compressed response, which was not requested
        ├── too_large       headers or body beyond the limit
        ├── protocol        not HTTP, or incomplete
        └── not_json        the body is not strict JSON

Messages are for administrators. They contain at most a host name, but no path, query or header, and nothing
that the provider sent.
"""


class OutboundError(Exception):
    # The target of a redirect, as the provider sent it: for the administrator, never for a log.
    redirect_target = ""
    # The status of a response that was not accepted.
    status = 0

    def __init__(self, code: str, message: str) -> None:
        # Both are passed on, so that a task queue can pickle the error.
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class OutboundRefused(OutboundError):
    """The policy forbids the call; nothing was sent."""


class OutboundFailed(OutboundError):
    """The call was allowed, but there was no usable response."""
