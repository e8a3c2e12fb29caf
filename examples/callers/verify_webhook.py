"""Verifies a webhook of the gateway (docs/callers/webhooks.md): for Python 3.9 or newer, without packages."""

import base64
import hashlib
import hmac
import json
import time


def verify_webhook(headers, body, secret):
    """Returns the message. Raises ValueError if it is not from the gateway, or is older than five minutes.

    headers: with names in lower case. body: the bytes as they arrived. secret: of your client, whsec_...
    """
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    message_id, timestamp, signatures = (headers.get(name, "") for name in names)
    if not (timestamp.isdecimal() and len(timestamp) <= 12 and abs(time.time() - int(timestamp)) < 300):
        raise ValueError("the webhook is too old")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    if not any(hmac.compare_digest(one.encode(), expected.encode()) for one in signatures.split(" ")):
        raise ValueError("the signature of the webhook is wrong")
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("the message is nested too deeply") from None
