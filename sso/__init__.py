"""Single sign-on with OpenID Connect."""
