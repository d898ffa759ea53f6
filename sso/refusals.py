"""In charge of what a refused sign-in is called: one table of codes, each with its status and its sentence.

    400  what came back is malformed, was used before, or belongs to another browser
    401  the provider's answer proves nobody whom we know
    403  known, but not let in
    503  the provider, or the connection to it, is not there

The code stands on the page, in the sign-in log and in the server's log. The sentence is for the user; `detail` is for
the administrator, names what was found, and never holds a token.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    status: int
    sentence: str


AGAIN = "Start again from the sign-in page."
TELL = "Tell your administrator if this happens again."
NOT_PROVEN = f"The identity provider's answer could not be verified. {TELL}"

REASONS: dict[str, Reason] = {
    # The way back from the provider.
    "response_malformed": Reason(400, f"What came back from the identity provider cannot be understood. {AGAIN}"),
    "token_in_query": Reason(400, f"The identity provider sent its answer in a form that is not accepted. {TELL}"),
    "state_unknown": Reason(400, f"This sign-in was finished, was given up, or belongs to another browser. {AGAIN}"),
    "state_expired": Reason(400, f"This sign-in took longer than ten minutes. {AGAIN}"),
    "issuer_unknown": Reason(400, "The link that led here names an identity provider that is not ours."),
    "token_replayed": Reason(400, "This was used before."),
    "logout_state": Reason(400, "You are signed out here. What came back from the identity provider is not ours."),
    "response_issuer": Reason(401, NOT_PROVEN),
    "provider_denied": Reason(401, "The identity provider did not sign you in."),
    # The code and what it was redeemed for.
    "code_rejected": Reason(401, f"The identity provider did not accept this sign-in. {AGAIN}"),
    "client_rejected": Reason(401, f"The identity provider does not accept this service. {TELL}"),
    "token_answer": Reason(401, NOT_PROVEN),
    "userinfo_answer": Reason(401, NOT_PROVEN),
    "userinfo_subject": Reason(401, NOT_PROVEN),
    # The ID token, in the order of its checks.
    "token_form": Reason(401, NOT_PROVEN),
    "token_alg": Reason(401, NOT_PROVEN),
    "token_key": Reason(401, NOT_PROVEN),
    "token_signature": Reason(401, NOT_PROVEN),
    "token_issuer": Reason(401, NOT_PROVEN),
    "token_audience": Reason(401, NOT_PROVEN),
    "token_time": Reason(401, NOT_PROVEN),
    "token_clock": Reason(401, f"The clocks of this service and of the identity provider differ. {TELL}"),
    "token_nonce": Reason(401, NOT_PROVEN),
    "token_subject": Reason(401, NOT_PROVEN),
    "token_access_hash": Reason(401, NOT_PROVEN),
    "token_kind": Reason(401, NOT_PROVEN),
    # Who it is.
    "script_error": Reason(401, f"Your data from the identity provider could not be read. {TELL}"),
    "profile_invalid": Reason(401, "Your data from the identity provider lacks a usable login or email address."),
    "case_rule": Reason(401, "Nobody can sign in with the present settings of upper and lower case."),
    "user_unknown": Reason(401, "There is no account for you here. Ask your administrator for one."),
    "user_ambiguous": Reason(401, "More than one account matches you. Ask your administrator to tell them apart."),
    "login_reserved": Reason(401, "No account can be made under your login. Ask your administrator for one."),
    "login_taken": Reason(403, "Your login is taken by another account. Ask your administrator."),
    "email_unverified": Reason(403, "The identity provider has not verified your email address."),
    "subject_conflict": Reason(403, "Your account belongs to another identity. Ask your administrator to reset it."),
    "user_inactive": Reason(403, "Your account is not active."),
    "signed_out_meanwhile": Reason(403, f"The identity provider signed you out at this moment. {AGAIN}"),
    "not_approved": Reason(403, "Your account cannot sign in this way until an administrator approved the connection."),
    # Whether there is a provider.
    "not_available": Reason(503, "Signing in with the identity provider is not available."),
    "provider_unresolved": Reason(503, "The identity provider cannot be found just now. Try again shortly."),
    "provider_unavailable": Reason(503, "The identity provider does not answer just now. Try again shortly."),
    "certificates_unavailable": Reason(503, "The identity provider's keys cannot be had just now. Try again shortly."),
    "too_busy": Reason(503, "Many people sign in at this moment. Try again shortly."),
}

ABOUT_WHO = frozenset(
    {
        "provider_denied", "profile_invalid", "user_unknown", "user_ambiguous", "login_reserved", "login_taken",
        "email_unverified", "subject_conflict", "user_inactive", "not_approved",
    }
)  # fmt: skip


class SignInRefused(Exception):
    """A sign-in, or a sign-out from outside, that does not happen.

    >>> SignInRefused("token_alg", "none").status
    401
    """

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    @property
    def status(self) -> int:
        return REASONS[self.code].status

    @property
    def is_about_who(self) -> bool:
        """Whether somebody else could come in."""
        return self.code in ABOUT_WHO

    @property
    def sentence(self) -> str:
        return REASONS[self.code].sentence

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code
