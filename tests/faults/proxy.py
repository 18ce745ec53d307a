"""A network that fails when it is told to: a TCP proxy on the loopback that can be cut, stalled, or set a trap."""

import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

__all__ = ["Proxy"]


class Proxy:
    """Passes bytes to and fro until it is told otherwise.

    A trap waits for a word from a client. What is done then is told by its name: `cut` loses what the client said,
    `deaf` passes it on and ends the connection instead of giving the answer, `silent` passes it on and then passes
    nothing more to the client, without a word.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._trap: tuple[bytes, str, Callable[[], None]] | None = None
        self._open = True
        self.mute = False
        """Whether all answers are lost, without a word."""
        self.sprung = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def trap(self, word: bytes, deed: str, then: Callable[[], None] = lambda: None) -> None:
        """Does the deed, once, when a client says the word, and first of all calls `then`."""
        self._trap = (word, deed, then)

    def cut(self) -> None:
        """Ends all connections and takes no new ones."""
        self._open = False
        for pair in list(self._pairs):
            self._end(pair)

    def mend(self) -> None:
        """Takes connections again."""
        self._open = True

    def close(self) -> None:
        """Ends it for good."""
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._open:
                client.close()
                continue
            pair = client, socket.create_connection(("127.0.0.1", self._target))
            self._pairs.append(pair)
            threading.Thread(target=self._pass, args=(pair,), daemon=True).start()

    def _pass(self, pair: tuple[socket.socket, socket.socket]) -> None:
        client, server = pair
        caught: tuple[str, Callable[[], None]] | None = None
        with suppress(OSError, ValueError):
            while True:
                for ready in select.select(pair, [], [])[0]:
                    data = ready.recv(2**16)
                    if not data:
                        self._end(pair)
                        return
                    if ready is client:
                        if self._trap is not None and self._trap[0] in data:
                            _, *caught = self._trap
                            self._trap = None
                            self.sprung += 1
                        if caught is None or caught[0] != "cut":
                            server.sendall(data)
                    if caught is None and ready is server:
                        client.sendall(b"" if self.mute else data)
                    elif caught is not None and (ready is server or caught[0] == "cut"):
                        deed, then = caught
                        then()
                        if deed != "silent":
                            self._end(pair)
                            return

    def _end(self, pair: tuple[socket.socket, socket.socket]) -> None:
        for end in pair:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        with suppress(ValueError):
            self._pairs.remove(pair)
