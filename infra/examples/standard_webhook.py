import base64
import hmac
import time


def is_genuine(secret, headers, body, tolerance_seconds=300):
    """Whether Rowmill sent this POST request, by its Standard Webhooks headers. `secret` is what `rowmill webhook-key
    --standard` prints, `headers` has lowercase names, and `body` is the raw bytes."""
    timestamp = headers["webhook-timestamp"]
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    signatures = headers["webhook-signature"].split(" ")
    is_signed = any([hmac.compare_digest(signature, expected) for signature in signatures])
    return is_signed and abs(time.time() - int(timestamp)) <= tolerance_seconds
