"""The reasons for refusing a sign-in or sign-out.

    400  the response is malformed, was used before, or belongs to another browser
    401  the provider's response does not prove the identity of a known user
    403  the user is known, but may not sign in
    503  the provider, or the connection to it, is unavailable

The code is shown on the page, in the sign-in log and in the server log. The message is for the user, the advice for
the administrator. A refusal's `detail` is for the administrator too, and never contains a token.
"""

from enum import Enum

SIGN_IN_AGAIN = "Please sign in again."
TELL_ADMIN = "Tell your administrator if this happens again."
NOT_VERIFIED = f"The identity provider's response could not be verified. {TELL_ADMIN}"
TRY_SHORTLY = "Try again shortly."
PROVIDER_ERROR = "The provider sent an invalid response. Report the error to the provider."


class Refusal(Enum):
    """Each row: status, title, message, advice. A test compares them with the documentation."""

    # The response.
    RESPONSE_MALFORMED = (
        400, "Invalid response", f"The identity provider's response is not valid. {SIGN_IN_AGAIN}",
        "Sign in again. If this happens repeatedly, check the response mode at the provider. It must be query if the "
        "“Response type” is code, and fragment if it is id_token. The mode form_post is not supported and returns "
        "status 403.",
    )  # fmt: skip
    TOKEN_IN_QUERY = (
        400, "Token in the URL", f"The identity provider sent its response in an unsupported form. {TELL_ADMIN}",
        "At the provider, set the response mode to fragment and allow the “Response type” of the connection.",
    )  # fmt: skip
    STATE_UNKNOWN = (
        400, "Expired or started in another browser",
        f"This sign-in has expired or was started in another browser. {SIGN_IN_AGAIN}",
        "Open the service under the host name in the Redirect URI and sign in again. If one user sees this often for "
        "no apparent reason, somebody may be sending them crafted links.",
    )  # fmt: skip
    STATE_EXPIRED = (
        400, "Took longer than ten minutes", f"This sign-in took longer than ten minutes. {SIGN_IN_AGAIN}",
        "Sign in again.",
    )  # fmt: skip
    ISSUER_UNKNOWN = (
        400, "Link names an unknown provider", "The link that you followed names an unknown identity provider.",
        "Correct the link. Its parameter iss must exactly match the issuer of the connection.",
    )  # fmt: skip
    TOKEN_REPLAYED = 400, "Token used before", "This token has already been used.", "No action is needed."
    LOGOUT_STATE = (
        400, "Sign-out of another browser",
        "You are signed out of this service. The identity provider's response does not belong to this browser.",
        "No action is needed.",
    )  # fmt: skip
    RESPONSE_ISSUER = (
        401, "Response from another provider", NOT_VERIFIED,
        "Check whether two providers share the client ID. Do not proceed until you have found the cause.",
    )  # fmt: skip
    PROVIDER_DENIED = (
        401, "Denied by the provider", "The identity provider did not sign you in.",
        "Check the provider's log. Assign the user to the application there.",
    )  # fmt: skip

    # The code and its tokens.
    CODE_REJECTED = (
        401, "Code rejected by the provider", f"The identity provider did not accept this sign-in. {SIGN_IN_AGAIN}",
        "Sign in again. If this happens repeatedly, check that the Redirect URI is exactly the one registered at the "
        "provider.",
    )  # fmt: skip
    CLIENT_REJECTED = (
        401, "Client ID or secret rejected", f"The identity provider does not accept this service. {TELL_ADMIN}",
        "Enter Client ID and Client secret again. A public client requires the type “PKCE”.",
    )  # fmt: skip
    TOKEN_ANSWER = (
        401, "Invalid response with the tokens", NOT_VERIFIED,
        "Allow the scope openid for this client at the provider. See the detail.",
    )  # fmt: skip
    USERINFO_ANSWER = (
        401, "Invalid response with the user info", NOT_VERIFIED,
        "See the detail. The provider must return userinfo as plain JSON.",
    )  # fmt: skip
    USERINFO_SUBJECT = (
        401, "User info of another user", NOT_VERIFIED,
        f"{PROVIDER_ERROR} Do not proceed until you have found the cause.",
    )  # fmt: skip

    # The ID token, in the order of its checks.
    TOKEN_FORM = (
        401, "Unreadable token", NOT_VERIFIED,
        "See the detail. Turn off token encryption for this client, or send fewer groups.",
    )  # fmt: skip
    TOKEN_ALG = 401, "Unsupported signature algorithm", NOT_VERIFIED, "Select RS256 for this client at the provider."
    TOKEN_KEY = (
        401, "Unknown signing key", NOT_VERIFIED,
        "Use “Update certificates” and read its message. Sign-ins fetch keys at most once every 30 seconds.",
    )  # fmt: skip
    TOKEN_SIGNATURE = (
        401, "Invalid signature", NOT_VERIFIED,
        "Use “Update certificates”. If the form warns that the provider publishes different keys with key IDs that "
        "are already stored, ask the provider whether this is correct. Then delete the stored certificate and "
        "update again.",
    )  # fmt: skip
    TOKEN_ISSUER = (
        401, "Token from another issuer", NOT_VERIFIED,
        "Use “Test connection”. The provider's issuer may have changed, or the token is from another tenant.",
    )  # fmt: skip
    TOKEN_AUDIENCE = (
        401, "Token for another client", NOT_VERIFIED, "Check the Client ID. Remove other audiences from the ID token.",
    )  # fmt: skip
    TOKEN_TIME = 401, "Invalid times in the token", NOT_VERIFIED, PROVIDER_ERROR
    TOKEN_CLOCK = (
        401, "Clocks differ", f"The clocks of this service and of the identity provider differ. {TELL_ADMIN}",
        "Synchronize both clocks with NTP. The detail shows the difference.",
    )  # fmt: skip
    TOKEN_NONCE = (
        401, "Token of another sign-in", NOT_VERIFIED,
        "Sign in again. If this happens repeatedly, the provider omits the nonce and cannot be used.",
    )  # fmt: skip
    TOKEN_SUBJECT = 401, "Token without a user", NOT_VERIFIED, PROVIDER_ERROR
    TOKEN_ACCESS_HASH = (
        401, "Access token does not match", NOT_VERIFIED,
        "Report this to the provider. The at_hash is missing or wrong, or the access token is missing or was replaced.",
    )  # fmt: skip
    TOKEN_KIND = (
        401, "Not an ID token", NOT_VERIFIED, "Do not proceed until you have found out where the token came from.",
    )  # fmt: skip

    # The user.
    SCRIPT_ERROR = (
        401, "Script error", f"Your data from the identity provider could not be read. {TELL_ADMIN}",
        "Open the connection and use “Try the script” with the last claims. The detail of this entry shows the reason.",
    )  # fmt: skip
    PROFILE_INVALID = (
        401, "No valid login or email", "Your data from the identity provider has no valid login or email address.",
        "Add email or profile to the scope, or change the script.",
    )  # fmt: skip
    CASE_RULE = (
        401, "Conflicting case-sensitivity settings",
        "Nobody can sign in because the case-sensitivity settings conflict. Ask your administrator.",
        "Clear “Ignore case sensitivity”, or set the property svc.login.username.sensitivity.enabled to false.",
    )  # fmt: skip
    USER_UNKNOWN = (
        401, "No account", "You do not have an account here. Ask your administrator for one.",
        "Create the account, or select “Enable user creation”.",
    )  # fmt: skip
    USER_AMBIGUOUS = (
        401, "Several accounts match", "More than one account matches your identity. Ask your administrator for help.",
        "Give each account a unique email, rename an account, or make logins case-sensitive.",
    )  # fmt: skip
    LOGIN_RESERVED = (
        401, "Login cannot be created automatically",
        "An account with your login cannot be created automatically. Ask your administrator to create one.",
        "Create the account yourself and set “User field” to “Email”, or change the script.",
    )  # fmt: skip
    LOGIN_TAKEN = (
        403, "Login belongs to another account",
        "Your login belongs to another account. Ask your administrator for help.",
        "Find out whether both accounts belong to the same person. Then correct the login or email of the existing "
        "account, or change the script.",
    )  # fmt: skip
    EMAIL_UNVERIFIED = (
        403, "Email not verified",
        "The identity provider has not verified your email address.", "Verify the address at the provider.",
    )  # fmt: skip
    SUBJECT_CONFLICT = (
        403, "Account linked to another identity",
        "Your account is linked to another identity. Ask your administrator to reset the link.",
        "If it is the same person (deleted and created again at the provider), delete the link under “Identity links”. "
        "Otherwise this refusal is correct.",
    )  # fmt: skip
    USER_INACTIVE = (
        403, "Account not active", "Your account is not active.",
        "Activate the account if this person should have access.",
    )  # fmt: skip
    SIGNED_OUT_MEANWHILE = (
        403, "Signed out during the sign-in",
        f"The identity provider signed you out during this sign-in. {SIGN_IN_AGAIN}", "Sign in again.",
    )  # fmt: skip
    NOT_APPROVED = (
        403, "Connection not approved", "You cannot sign in this way until an administrator approves the connection.",
        "Sign in at /login/?local=1, review the connection's history and select “Approve”. Then, under “Identity "
        "links”, delete the links that were created before the approval.",
    )  # fmt: skip

    # The provider.
    NOT_AVAILABLE = (
        503, "Connection not available", "Signing in with the identity provider is not available.",
        "See the detail. If no connection is active, activate one.",
    )  # fmt: skip
    PROVIDER_UNRESOLVED = (
        503, "Provider not found", f"The identity provider cannot be found. {TRY_SHORTLY}",
        "Use “Test connection”. It shows which URLs were requested.",
    )  # fmt: skip
    PROVIDER_UNAVAILABLE = (
        503, "Provider unavailable", f"The identity provider is unavailable. {TRY_SHORTLY}",
        "Try again later, or check whether this machine can reach the provider. While the provider is unavailable, "
        "sign in at /login/?local=1.",
    )  # fmt: skip
    CERTIFICATES_UNAVAILABLE = (
        503, "Provider's keys unavailable", f"The identity provider's keys are currently unavailable. {TRY_SHORTLY}",
        "Use “Update certificates”. It shows the reason.",
    )  # fmt: skip
    TOO_BUSY = (
        503, "Too busy", f"Too many users are signing in. {TRY_SHORTLY}",
        "Sign in again. If this happens repeatedly, check the load of this machine and the response times of the "
        "provider.",
    )  # fmt: skip

    def __new__(cls, *row: int | str) -> "Refusal":
        refusal = object.__new__(cls)
        refusal._value_ = len(cls.__members__)  # not the row: Enum would merge members with equal rows
        return refusal

    def __init__(self, status: int, title: str, message: str, advice: str) -> None:
        self.code = self.name.lower()
        self.status = status
        self.title = title  # in the sign-in log
        self.message = message
        self.advice = advice

    @classmethod
    def from_code(cls, code: str) -> "Refusal | None":
        """
        >>> Refusal.from_code("token_alg").status, Refusal.from_code("ok")
        (401, None)
        """
        return cls.__members__.get(code.upper())


# Refusals after which the user may be able to sign in with another account.
USER_REFUSALS = frozenset(
    {
        Refusal.PROVIDER_DENIED, Refusal.PROFILE_INVALID, Refusal.USER_UNKNOWN, Refusal.USER_AMBIGUOUS,
        Refusal.LOGIN_RESERVED, Refusal.LOGIN_TAKEN, Refusal.EMAIL_UNVERIFIED, Refusal.SUBJECT_CONFLICT,
        Refusal.USER_INACTIVE, Refusal.NOT_APPROVED,
    }
)  # fmt: skip


class SignInRefused(Exception):
    """Raised when a sign-in or sign-out is refused.

    >>> str(SignInRefused(Refusal.TOKEN_ALG, "none"))
    'token_alg: none'
    """

    def __init__(self, refusal: Refusal, detail: str = "") -> None:
        super().__init__(refusal, detail)
        self.refusal = refusal
        self.detail = detail
        self.code = refusal.code
        self.status = refusal.status
        self.message = refusal.message

    @property
    def suggests_other_account(self) -> bool:
        return self.refusal in USER_REFUSALS

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code
