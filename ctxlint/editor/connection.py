"""JSON-RPC with one client: its messages go to the features, and what these answer, ask and announce goes to it."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ctxlint.editor import lsp

if TYPE_CHECKING:
    from collections.abc import Callable

    Handler = TypeVar("Handler", bound=Callable[[Any], object])

logger = logging.getLogger(__name__)

NO_JSON = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMETERS = -32602
FAILED = -32603
NOT_INITIALIZED = -32002
CANCELLED = -32800


class Refusal(Exception):
    """Why a message is not handled; the answer to a request is this error."""

    def __init__(self, code: int, message: str) -> None:
        """``code`` is that of the protocol."""
        super().__init__(message)
        self.code = code


class Connection:
    """The messages of one client. All of it runs on the thread of the event loop."""

    def __init__(self) -> None:
        """Start before the first message; what is sent before there is a client is lost."""
        self.write: Callable[[bytes], object] = len
        """Sends a message with its header."""
        self._features: dict[str, Callable[[Any], object]] = {"shutdown": self._shut_down}
        self._is_begun = self._is_over = False
        self._running: dict[object, asyncio.Task[object]] = {}
        """The client's requests that are not answered yet, by their ids."""
        self._asked: dict[object, asyncio.Future[Any]] = {}
        """The requests to the client that it has not answered yet, by their ids."""

    def feature(self, method: str) -> Callable[[Handler], Handler]:
        """The decorator of what handles a method; for a request, it gives the answer, or a coroutine that does."""

        def add(handler: Handler) -> Handler:
            self._features[method] = handler
            return handler

        return add

    # Sending

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def request(self, method: str, params: object = None) -> asyncio.Future[Any]:
        """Send a request. The answer may be awaited."""
        answer = asyncio.get_running_loop().create_future()
        number = f"ctxlint-{id(answer)}"
        self._asked[number] = answer
        self._send({"id": number, "method": method, "params": params})
        return answer

    def _send(self, message: dict[str, object]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}, default=lsp.fields_of, separators=(",", ":")).encode()
        logger.debug("Sent: %s", body)
        self.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def _refuse(self, number: object, refusal: Refusal) -> None:
        self._send({"id": number, "error": {"code": refusal.code, "message": str(refusal)}})

    # Receiving

    def receive(self, body: bytes) -> None:
        """Handle one message. An invalid request gets an error response; anything else is logged."""
        logger.debug("Received: %s", body)
        number: object = None
        try:
            message = _message_in(body)
            if "method" not in message:
                self._receive_answer(message)
            elif "id" in message:
                number = message["id"]
                self._receive_request(number, message)
            else:
                self._receive_notification(message)
        except Refusal as refusal:
            self._refuse(number, refusal)
        except Exception as error:  # (one message must not end the server)
            logger.error("A message was not handled", exc_info=error)
            if number is not None:
                self._refuse(number, _failure(error))

    def _receive_answer(self, message: dict[str, Any]) -> None:
        answer = self._asked.pop(message.get("id"), None)
        if answer is None or answer.done():
            logger.warning("Nothing was asked that has this answer: %s", message)
        elif message.get("error") is None:
            answer.set_result(message.get("result"))
        else:
            answer.set_exception(Refusal(FAILED, str(message["error"])))
            answer.exception()  # not everybody waits for it

    def _receive_request(self, number: object, message: dict[str, Any]) -> None:
        answer = self._handled(message)
        if asyncio.iscoroutine(answer):
            task = self._running[number] = asyncio.get_running_loop().create_task(answer)
            task.add_done_callback(partial(self._finish, number))
        else:
            self._send({"id": number, "result": answer})

    def _receive_notification(self, message: dict[str, Any]) -> None:
        if message["method"] == "exit":
            sys.exit(0 if self._is_over else 1)
        try:
            if message["method"] == "$/cancelRequest" and isinstance(message.get("params"), dict):
                self._cancel(message["params"].get("id"))
            else:
                self._handled(message)
        except Refusal as refusal:
            logger.warning("A notification was not handled: %s", refusal)

    def _handled(self, message: dict[str, Any]) -> object:
        """What handles a message gives."""
        method = message["method"]
        self._enter_phase(method)
        handler = self._features.get(method)
        if handler is None:
            raise Refusal(UNKNOWN_METHOD, f"{method}: unknown method")
        try:
            params = lsp.read(lsp.PARAMETERS.get(method, Any), message.get("params"))
        except lsp.Invalid as error:
            raise Refusal(INVALID_PARAMETERS, f"{method}: {error}") from error
        return handler(params)

    def _enter_phase(self, method: object) -> None:
        """Note in which phase of the protocol a message arrives; raise Refusal for one that is not allowed there."""
        if not isinstance(method, str):
            raise Refusal(INVALID_REQUEST, "a method is a string")
        if self._is_over:
            raise Refusal(INVALID_REQUEST, "the session was shut down")
        if self._is_begun and method == "initialize":
            raise Refusal(INVALID_REQUEST, "the session has begun already")
        if not self._is_begun and method != "initialize":
            raise Refusal(NOT_INITIALIZED, "the session has not begun")
        self._is_begun, self._is_over = True, method == "shutdown"

    # Requests in work

    def _finish(self, number: object, task: asyncio.Task[object]) -> None:
        """Answer a request."""
        self._running.pop(number, None)
        try:
            if task.cancelled():
                self._refuse(number, Refusal(CANCELLED, "the request was cancelled"))
            else:
                self._send({"id": number, "result": task.result()})
        except Exception as error:  # (as above)
            logger.error("A request failed", exc_info=error)
            self._refuse(number, _failure(error))

    def _cancel(self, number: object) -> None:
        task = self._running.get(number)
        if task is not None:
            task.cancel()

    def _shut_down(self, _: object) -> None:
        for task in self._running.values():
            task.cancel()


def _message_in(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(NO_JSON, f"no JSON: {error}") from error
    if not isinstance(message, dict):
        raise Refusal(INVALID_REQUEST, "a message is an object")
    return message


def _failure(error: BaseException) -> Refusal:
    return Refusal(FAILED, f"{type(error).__name__}: {error}")
