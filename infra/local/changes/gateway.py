"""The quota of API Gateway for bodies. The emulator hands bodies of any length to a function, which they could end."""

# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html
BODY_MAX_BYTES = 10 * 1024 * 1024
API_PREFIX = "/_aws/execute-api/"
REFUSAL = b'{"message":"Request Entity Too Large"}'


def with_body_quota(app):
    """The application, which answers 413 to a request of an API whose announced body is too long. It reads that body,
    so that the client gets to the answer, and keeps none of it."""

    async def answer(scope, receive, send):
        is_api = scope["type"] == "http" and scope["path"].startswith(API_PREFIX)
        if not is_api or announced_bytes(scope) <= BODY_MAX_BYTES:
            return await app(scope, receive, send)
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(REFUSAL)).encode())]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": REFUSAL})

    return answer


def announced_bytes(scope) -> int:
    length = dict(scope["headers"]).get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0
