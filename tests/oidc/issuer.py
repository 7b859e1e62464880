"""An OpenID provider on loopback. Anyone can log in, and any claims can be signed.

Prints its URL, and ends when its standard input closes. Beside the provider's own routes:

    POST /sign {"header": {...}, "claims": {...}, "key": "own" | "another" | "secret" | "none"}

answers a token with these claims: signed with the provider's key, with a key that it does not publish, with its public key
taken for a secret (HS256), or not at all.
"""

import base64
import hmac
import json
import sys
import threading

import flask
import oidc_provider_mock
import werkzeug.serving
from authlib import jose
from oidc_provider_mock import _app

# A command is a public client: it has no secret.
for grant in (_app.AuthorizationCodeGrant, _app.RefreshTokenGrant):
    grant.TOKEN_ENDPOINT_AUTH_METHODS = ["none"]


class NamedKey(_app.OpenIDCode):
    """Names the key in the header of an ID token, as API Gateway demands it."""

    def get_jwt_config(self, grant, client=None):
        return {**super().get_jwt_config(grant, client), "kid": _app.storage.jwk.thumbprint()}


_app.OpenIDCode = NamedKey


def part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def main():
    app = oidc_provider_mock.app()
    another = jose.RSAKey.generate_key(is_private=True)

    @app.after_request
    def allow_pages(response):
        # A page on another origin reads where to sign in, and gets its token.
        response.headers["Access-Control-Allow-Origin"] = "*"
        return response

    @app.post("/sign")
    def sign():
        wanted = flask.request.get_json()
        own = flask.g.oidc_provider_mock_storage.jwk
        header = {"alg": "RS256", "kid": own.thumbprint(), **wanted.get("header", {})}
        unsigned = f"{part(header)}.{part(wanted['claims'])}"
        if wanted["key"] == "none":
            return unsigned + "."
        if wanted["key"] == "secret":
            # By hand: the library refuses to take a public key for a secret.
            digest = hmac.digest(own.as_pem(is_private=False), unsigned.encode(), "sha256")
            return f"{unsigned}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
        key = own if wanted["key"] == "own" else another
        token = jose.JsonWebSignature().serialize_compact(header, json.dumps(wanted["claims"]), key)
        return token.decode()

    server = werkzeug.serving.make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
