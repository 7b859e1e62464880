import hmac
import time


def is_genuine(key, host, path, headers, body, max_age_seconds=300):
    """Whether Rowmill sent this POST request. `key` is what `rowmill webhook-key` prints, `path` has the query, `headers`
    has lowercase names, and `body` is the raw bytes."""
    timestamp = headers["rowmill-timestamp"]
    lines = ["v2", timestamp, "POST", host, path, headers["idempotency-key"], ""]
    expected = "v2=" + hmac.new(key.encode(), "\n".join(lines).encode() + body, "sha256").hexdigest()
    signatures = headers["rowmill-signature"].split(",")
    is_signed = any([hmac.compare_digest(signature, expected) for signature in signatures])
    return is_signed and abs(time.time() - int(timestamp)) <= max_age_seconds
