"""The tables of single sign-on: connections, certificates, links between accounts and providers, the sign-in log."""

from sso.models.certificates import CertificatePair as CertificatePair
from sso.models.certificates import IdpCertificate as IdpCertificate
from sso.models.links import IdentityLink as IdentityLink
from sso.models.log import SignIn as SignIn
from sso.models.sessions import ProviderSession as ProviderSession
from sso.models.settings import OidcSetting as OidcSetting
from sso.models.sign_outs import ProviderSignOut as ProviderSignOut
