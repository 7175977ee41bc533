# Verifies a notice that Relay posts to your server. Needs Python 3.6 or later.
#
# `body` is the raw body in bytes: `request.get_data()` in Flask, `request.body` in Django.
# `header` is the header `X-Service-Signature`, and `secret` is the relay's signing secret.
import hashlib
import hmac
import re
import time

TOLERANCE_SECONDS = 300


def is_from_relay(body, header, secret, now=None):
    match = re.fullmatch(r"t=([0-9]{1,13})((?:,v1=[0-9a-f]{64}){1,8})", header or "")
    # Anyone can sign with an empty secret, such as that of a variable that is not set.
    if match is None or not secret:
        return False
    sent_at, signatures = match.groups()
    if abs((time.time() if now is None else now) - int(sent_at)) > TOLERANCE_SECONDS:
        return False
    signed = sent_at.encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    # During the overlap of a rotation, a notice has a signature of each secret.
    return any(hmac.compare_digest(expected, one) for one in signatures.split(",v1=")[1:])
