"""JSON-RPC with one client: requests, answers and notifications in both directions, in the order of the protocol."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from typing import TYPE_CHECKING, Any, TypeVar

from ctxlint.editor import lsp

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

logger = logging.getLogger(__name__)

Handler = TypeVar("Handler", bound="Callable[[Any], Any]")

NO_JSON = -32700
INVALID_REQUEST = -32600
NO_SUCH_METHOD = -32601
INVALID_PARAMETERS = -32602
FAILED = -32603
NOT_BEGUN = -32002
CANCELLED = -32800


class RefusedByClient(Exception):
    """The client has answered a request with an error."""


class Connection:
    """What the server says and hears. Everything happens on the thread of the event loop."""

    def __init__(self) -> None:
        """Start without features; ``write`` is set when there is somebody to write to."""
        self.write: Callable[[bytes], None] = lambda _data: None
        self.end: Callable[[], None] = lambda: None
        """Called when the client ends the session."""
        self.exit_code = 0
        self.loop: asyncio.AbstractEventLoop | None = None
        """Set with ``write``."""
        self.client: dict[str, Any] = {}
        """The capabilities of the client."""
        self.capabilities: dict[str, Any] = {}
        """Those of the server, which its features declare."""
        self._handlers: dict[str, tuple[Callable[[Any], Any], Any]] = {}
        self._running: dict[int | str, asyncio.Task[None]] = {}
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0
        self._is_begun = self._is_over = False
        self.feature("shutdown", Any)(self._shut_down)
        self.feature("$/cancelRequest", lsp.Cancelled)(self._cancel)

    def feature(self, method: str, parameters: Any, **capabilities: Any) -> Callable[[Handler], Handler]:
        """Declare a handler of a method with its parameters, and the capabilities that it gives the server."""

        def register(handler: Handler) -> Handler:
            self._handlers[method] = (handler, parameters)
            self.capabilities.update(capabilities)
            return handler

        return register

    def supports(self, *path: str) -> Any:
        """A capability of the client, by its keys; None if it does not declare it."""
        found: Any = self.client
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    # From the server

    def notify(self, method: str, parameters: object) -> None:
        """Send a notification."""
        self._send({"method": method, "params": parameters})

    def request(self, method: str, parameters: object = None) -> asyncio.Future[Any]:
        """Send a request; returns its result, or RefusedByClient, later."""
        self._count += 1
        future = self._asked[self._count] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody has to wait for it
        message = {"id": self._count, "method": method}
        self._send(message if parameters is None else {**message, "params": parameters})
        return future

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task in the background."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("A task failed", exc_info=task.exception())

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()
        logger.debug("Sent: %s", body)
        self.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def _refuse(self, number: object, code: int, message: str) -> None:
        self._send({"id": number, "error": {"code": code, "message": message}})

    # From the client

    def receive(self, body: bytes) -> None:
        """Handle one message. An invalid request gets an error as its answer; anything else is logged."""
        logger.debug("Received: %s", body)
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            self._refuse(None, NO_JSON, f"no JSON: {error}")
            return
        if not isinstance(message, dict):
            self._refuse(None, INVALID_REQUEST, "a message is an object")
            return
        number, method = message.get("id"), message.get("method")
        number = number if type(number) in (int, str) else None
        if method is None:
            self._answered(number, message)
            return
        if not isinstance(method, str):
            refusal: tuple[int, str] | None = (INVALID_REQUEST, "the method is not a string")
        else:
            refusal = self._refusal(method)
        if refusal is not None:
            if number is not None:
                self._refuse(number, *refusal)
            return
        self._handle(number, method, message.get("params"))

    def _refusal(self, method: str) -> tuple[int, str] | None:
        """Why a message is not allowed in this phase of the session; None if it is."""
        if method == "exit":
            return None
        if self._is_over:
            return INVALID_REQUEST, "the session was shut down"
        if self._is_begun and method == "initialize":
            return INVALID_REQUEST, "the session has begun already"
        if not self._is_begun and method != "initialize":
            return NOT_BEGUN, "the session has not begun"
        self._is_begun = True
        return None

    def _handle(self, number: Any, method: str, parameters: object) -> None:
        if method == "exit":
            self.exit_code = 0 if self._is_over else 1
            self.end()
            return
        handler, kind = self._handlers.get(method, (None, None))
        if handler is None:
            if number is not None:
                self._refuse(number, NO_SUCH_METHOD, f"no such method: {method}")
            return
        if not lsp.fits(parameters, kind):
            logger.warning("%s: invalid parameters", method)
            if number is not None:
                self._refuse(number, INVALID_PARAMETERS, f"invalid parameters of {method}")
            return
        if inspect.iscoroutinefunction(handler):
            task = self.start(self._answer_later(number, method, handler(parameters)))
            if number is not None:
                self._running[number] = task
            return
        try:
            self._answer(number, handler(parameters))
        except Exception as error:  # noqa: BLE001  (one message must not end the server)
            self._fail(number, method, error)

    async def _answer_later(self, number: Any, method: str, work: Coroutine[Any, Any, object]) -> None:
        try:
            self._answer(number, await work)
        except asyncio.CancelledError:
            if number is not None:
                self._refuse(number, CANCELLED, f"request {number} was cancelled")
            raise
        except Exception as error:  # noqa: BLE001  (as above)
            self._fail(number, method, error)
        finally:
            self._running.pop(number, None)

    def _answer(self, number: Any, result: object) -> None:
        if number is not None:
            self._send({"id": number, "result": result})

    def _fail(self, number: Any, method: str, error: Exception) -> None:
        logger.error("%s", method, exc_info=error)
        if number is not None:
            self._refuse(number, FAILED, str(error))

    def _answered(self, number: Any, message: dict[str, Any]) -> None:
        """The client has answered a request."""
        future = self._asked.pop(number, None)
        if future is None or future.done():
            return
        if "error" in message:
            future.set_exception(RefusedByClient(str(message["error"])))
        else:
            future.set_result(message.get("result"))

    def _shut_down(self, _parameters: object) -> None:
        self._is_over = True
        for task in tuple(self._running.values()):
            task.cancel()

    def _cancel(self, parameters: lsp.Cancelled) -> None:
        task = self._running.get(parameters["id"])
        if task is not None:
            task.cancel()
