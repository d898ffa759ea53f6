"""What an administrator can do about a refused sign-in, by its code: as docs/reference/sign-in-errors.md says it."""

from collections.abc import Mapping

ADVICE: Mapping[str, str] = {
    "response_malformed": (
        "Start again. If it stays, look at the provider's response mode: query for code, fragment for id_token (with "
        "form_post the status is 403)."
    ),
    "token_in_query": "Set the provider to the response type of the connection and to response mode fragment.",
    "state_unknown": (
        "Start again, under the host name of the Redirect URI. Seen often for one person without cause: somebody "
        "may have sent them a prepared link."
    ),
    "state_expired": "Start again.",
    "issuer_unknown": "Correct the link: iss is the connection's issuer, exactly.",
    "token_replayed": "Nothing.",
    "logout_state": "Nothing.",
    "response_issuer": "Check whether two providers share the client id; do not go on until it is clear.",
    "provider_denied": "Look into the provider's log; assign the person there.",
    "code_rejected": "Start again. If it stays, compare the Redirect URI with the provider's, byte for byte.",
    "client_rejected": "Type Client ID and Client secret again. A public client needs the type PKCE.",
    "token_answer": "Add openid to the scope the client may use; see the detail.",
    "userinfo_answer": "Set the provider's userinfo answer to plain JSON.",
    "userinfo_subject": "A fault of the provider; do not go on until it is clear.",
    "token_form": "Turn off token encryption for this client; send fewer groups.",
    "token_alg": "Choose RS256 for the client at the provider.",
    "token_key": (
        "Update certificates and read what it says. It asks the provider once in 30 seconds at most by itself."
    ),
    "token_signature": (
        "Update certificates. If the form warns that a key changed under its kid, ask the provider for a new kid."
    ),
    "token_issuer": "Test connection; the provider may have changed its name, or the tenant is another one.",
    "token_audience": "Check the Client ID; take further audiences out of the ID token.",
    "token_time": "A fault of the provider.",
    "token_clock": "Set both clocks by NTP. The detail has the difference.",
    "token_nonce": "Start again. If it stays, the provider drops the nonce: not usable.",
    "token_subject": "A fault of the provider.",
    "token_access_hash": "A fault of the provider, or a token put in by somebody else.",
    "token_kind": "Do not go on until it is clear where it came from.",
    "script_error": "Open the connection and Try the script with the last claims; the detail has the reason.",
    "profile_invalid": "Add email or profile to the scope, or change the script.",
    "case_rule": "Clear the one, or set the other to false.",
    "user_unknown": "Make the account, or select Enable user creation.",
    "user_ambiguous": (
        "Give each account an email of its own (the form of a user warns), or rename one, or let case count."
    ),
    "login_reserved": "Make the account by hand and let User field find it by email, or change the script.",
    "login_taken": "Decide whether it is the same person; then correct the account's User field, or the script.",
    "email_unverified": "Verify the address at the provider.",
    "subject_conflict": (
        "If it is the same person (deleted and made anew there), delete the tie under Identity links. If not, "
        "this is how it should be."
    ),
    "user_inactive": "Activate it, if it should be.",
    "signed_out_meanwhile": "Start again.",
    "not_approved": (
        "Sign in at /login/?local=1, look at the connection's history, press Approve; reset a link made before that."
    ),
    "not_available": "Activate one.",
    "provider_unresolved": "Test connection says what was tried.",
    "provider_unavailable": "Wait, or look whether this machine reaches it. /login/?local=1 works meanwhile.",
    "certificates_unavailable": "Update certificates says why.",
    "too_busy": "Start again. If it stays, look at the load of this machine, and how long the provider takes.",
}
