"""The tables of single sign-on: connections, certificates, links between accounts and providers, the sign-in log."""

from sso.models.certificates import CertificatePair as CertificatePair
from sso.models.certificates import IdpCertificate as IdpCertificate
from sso.models.identity_links import IdentityLink as IdentityLink
from sso.models.oidc_settings import OidcSetting as OidcSetting
from sso.models.provider_sessions import ProviderSession as ProviderSession
from sso.models.provider_sessions import ProviderSignOut as ProviderSignOut
from sso.models.sign_in_log import SignIn as SignIn
