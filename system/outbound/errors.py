"""What can go wrong with an outbound call, as one tree with stable codes.

    OutboundError
    ├── OutboundRefused     we do not send it; the address or the request must change
    │   ├── too_long        more than 2000 characters
    │   ├── characters      control characters, spaces, non-ASCII, a broken % escape
    │   ├── scheme          not https (nor http under the development switch)
    │   ├── userinfo, query, fragment
    │   ├── host            empty, malformed, or a number in disguise (127.1, 0x7f000001)
    │   ├── port            not 443 (but for the development switch)
    │   ├── address         link-local, metadata, loopback ..., typed or resolved
    │   └── header          a request header that cannot be sent
    └── OutboundFailed      we tried; the provider or the way to it must change
        ├── dns             no such name, no address, or too many lookups under way
        ├── connect         nothing listens there, or no route
        ├── tls             the certificate or the encryption was not accepted
        ├── ca_bundle       the operator's own bundle cannot be read
        ├── timeout         the connection or the whole call took too long
        ├── redirected      3xx; never followed
        ├── encoded         a compressed answer, though we asked for none
        ├── too_large       headers or body beyond the limit
        ├── protocol        no HTTP, or broken off
        └── not_json        the body is not JSON of the strict kind

A message is a sentence for an administrator. It names a host at most: no path, no query, no header,
nothing the other side sent.
"""


class OutboundError(Exception):
    # Where a redirect leads that was not followed: the other side's own words, for whoever asked and never for a log.
    leads_to = ""

    def __init__(self, code: str, message: str) -> None:
        # Both are handed on, so that a task queue can pickle the error.
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class OutboundRefused(OutboundError):
    """The policy forbids the call; nothing was sent."""


class OutboundFailed(OutboundError):
    """The call was allowed and did not come to a usable answer."""
