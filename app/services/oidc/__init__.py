"""Tokens of an OIDC issuer, and the sign-in of users there.

    issuer: discovery, keys ─▶ verification ─▶ access: claims to grants ─▶ Principal
                            └▶ sign_in: a code, refresh token or device code to a token

Nothing here delays a request with another token: the issuer may be unreachable, slow or hostile. What it sends is
bounded in time and size.
"""
