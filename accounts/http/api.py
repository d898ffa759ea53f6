"""REST endpoints that create an access key for a password or a session, and return the caller's profile."""

from typing import Any

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authentication import access_keys, passwords
from accounts.authentication.schemes import BasicAuthentication, BearerAuthentication, BrowserSessionAuthentication
from system.errors import InvalidInput
from system.http.json_view import JsonView
from system.openapi import describe
from system.records import acting_user
from system.strict_json import InvalidJson


class CredentialsSerializer(serializers.Serializer[Any]):
    username = serializers.CharField(max_length=passwords.MAX_INPUT_LENGTH, trim_whitespace=False)
    password = serializers.CharField(max_length=passwords.MAX_INPUT_LENGTH, trim_whitespace=False)


KEY_DATA = inline_serializer("KeyData", {"auth_key": serializers.CharField()})
ROLE_NAMES = serializers.ListField(child=serializers.CharField())
PROFILE = inline_serializer(
    "Me", {"login": serializers.CharField(), "email": serializers.CharField(), "roles": ROLE_NAMES}
)


class LoginView(APIView):
    """Exchanges a login and password for an access key that is valid for 12 hours."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    @describe(
        "auth_login_create",
        "Create an access key by signing in",
        {200: inline_serializer("Key", {"status": serializers.CharField(), "data": KEY_DATA})},
        request=CredentialsSerializer,
        tags=["Credentials"],
        auth=[],
    )
    def post(self, request: Request) -> Response:
        if not isinstance(request.data, dict):
            raise InvalidJson("Send a JSON object with username and password.")
        credentials = CredentialsSerializer(data=request.data)
        credentials.is_valid(raise_exception=True)
        login, password = credentials.validated_data["username"], credentials.validated_data["password"]
        user = passwords.verify_password(login, password, request.META.get("REMOTE_ADDR", ""))
        acting_user.set_current(user.pk)
        return Response({"status": "OK", "data": {"auth_key": access_keys.create_login_key(user)}})


class ProfileView(APIView):
    """Returns the caller's login, email and roles."""

    authentication_classes = (BearerAuthentication, BasicAuthentication, BrowserSessionAuthentication)

    @describe("me_retrieve", "Get the caller's profile", {200: PROFILE}, tags=["Credentials"])
    def get(self, request: Request) -> Response:
        caller: Any = request.user
        return Response({"login": caller.login, "email": caller.email, "roles": sorted(caller.role_names)})


class DocsKeyView(JsonView):
    """Creates the key that the API docs use for the signed-in user; read-only unless `allow_writes` is true."""

    authentication_classes = (BrowserSessionAuthentication,)
    http_method_names = ["post"]
    schema = None

    def post(self, request: Request) -> Response:
        body: Any = request.data
        allow_writes = body.get("allow_writes", False) if isinstance(body, dict) else None
        if not isinstance(allow_writes, bool) or body.keys() - {"allow_writes"}:
            raise InvalidInput("The body can contain only the boolean allow_writes.", field="allow_writes")
        user: Any = request.user
        secret = access_keys.create_docs_key(user, request.session, read_only=not allow_writes)
        lifetime_s = int(access_keys.DOCS_KEY_LIFETIME.total_seconds())
        return Response({"status": "OK", "data": {"auth_key": secret, "expires_in": lifetime_s}})
