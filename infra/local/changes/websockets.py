"""The handshake of a WebSocket."""

import contextvars
import inspect

from changes.shape import Mismatch, expect_parameters, named


def pass_refusals_on(apigateway) -> None:
    """API Gateway answers the handshake of a WebSocket that the function of `$connect` refuses with the function's
    status. The emulator closes it, and the server makes 403 of that."""
    handle, invoke = named(apigateway, "handle_websocket"), named(apigateway, "_invoke_ws_lambda")
    refuse = named(apigateway, "_refuse_ws_handshake")
    expect_parameters(handle, ["scope", "receive", "send", "api_id", "path_override"])
    expect_parameters(refuse, ["scope", "send", "status", "message", "connection_id", "request_id"])
    if list(inspect.signature(invoke).parameters)[5:8] != ["connection_id", "event_type", "message_id"]:
        raise Mismatch(f"{invoke.__qualname__} should take connection_id, event_type, message_id from its sixth parameter on")
    refusals = contextvars.ContextVar("refusals")

    async def invoke_and_note(*arguments, **named_arguments):
        answer = await invoke(*arguments, **named_arguments)
        connection_id, event_type, request_id = arguments[5:8]
        status = int((answer or {}).get("statusCode", 200))
        if event_type == "CONNECT" and not 200 <= status < 300:
            refusals.get().append((status, "", connection_id, request_id))
        return answer

    async def handle_and_answer(scope, receive, send, api_id, path_override=None):
        refused = []
        refusals.set(refused)

        async def send_or_refuse(message):
            if message["type"] == "websocket.close" and refused:
                await refuse(scope, send, *refused.pop())
            else:
                await send(message)

        await handle(scope, receive, send_or_refuse, api_id, path_override)

    apigateway._invoke_ws_lambda = invoke_and_note
    apigateway.handle_websocket = handle_and_answer
