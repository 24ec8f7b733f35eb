"""A network between a client and a store: it fails in the ways that networks do.

===============  ==================================================================================================
request lost     the connection ends before the server has the block
answer lost      the server has done its work, and the connection ends before the client knows
busy             the client is told to slow down
late             a block waits for up to a second
reset            both ends get a reset (RST), which drops what was sent and not read
half-open        no block of this direction arrives any more; neither end is told, until the client gives up
narrow           a block goes through at 64 KiB a second
reordered        an answer waits until an answer on another connection has passed it
===============  ==================================================================================================
"""

import random
import socket
import struct
import threading
import time
from contextlib import contextmanager, suppress

BLOCK = 65_536
VERBS = (b"GET ", b"PUT ", b"POST", b"HEAD", b"DELE")
OF_REQUESTS = ("late", "busy", "request lost", "reset", "half-open", "narrow")
OF_ANSWERS = ("late", "answer lost", "reset", "half-open", "narrow", "reordered")
PIECE, PIECES_EACH_S = 4096, 16
BUSY = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\nRetry-After: 0\r\n\r\n"


class BadNetwork:
    """Passes bytes on between clients and a server of this machine, and fails now and then.

    Args:
        port: the port of the server.
        share: the share of the blocks of bytes that something happens to.
        seed: decides what happens when.
        kinds: what may happen; see the module.

    Attributes:
        port: the port at which clients reach the server.
        happened: how often each kind of failure happened.
        open: whether the network passes anything on.
    """

    def __init__(self, port, share, seed, kinds=(*OF_REQUESTS, *OF_ANSWERS)):
        self._server, self.share, self._luck = port, share, random.Random(seed)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._of_requests = [kind for kind in OF_REQUESTS if kind in kinds]
        self._of_answers = [kind for kind in OF_ANSWERS if kind in kinds]
        self.happened = dict.fromkeys(kinds, 0)
        self.open = True
        self._answers, self._passed = 0, threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if not self.open:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._server))
            for source, sink, asks in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pass_on, args=(source, sink, asks), daemon=True).start()

    def _pass_on(self, source, sink, asks):
        try:
            while block := source.recv(BLOCK):
                if not self.open or not self._let_through(block, source, sink, asks):
                    break
                if not asks:
                    self._count_answer()
        except OSError:
            pass
        for end in (source, sink):
            end_connection(end)

    def _let_through(self, block, source, sink, asks):
        """Passes a block on, or not. Returns whether the connection goes on."""
        kind = self._draw(block, asks)
        if kind in ("busy", "reset", "request lost", "answer lost"):
            if kind == "busy":
                source.sendall(BUSY)
            if kind == "reset":
                for end in (source, sink):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    end.close()
            return False
        if kind == "half-open":
            while source.recv(BLOCK):
                pass
            return False
        if kind == "late":
            time.sleep(self._luck.uniform(0.1, 1.0))
        if kind == "reordered":
            self._wait_for_another_answer()
        if kind == "narrow":
            for first in range(0, len(block), PIECE):
                sink.sendall(block[first : first + PIECE])
                time.sleep(1 / PIECES_EACH_S)
        else:
            sink.sendall(block)
        return True

    def _draw(self, block, asks):
        kinds = self._of_requests if asks else self._of_answers
        if not kinds or self._luck.random() >= self.share:
            return None
        kind = self._luck.choice(kinds)
        if kind == "busy" and block[:4] not in VERBS:
            return None
        self.happened[kind] += 1
        return kind

    def _count_answer(self):
        with self._passed:
            self._answers += 1
            self._passed.notify_all()

    def _wait_for_another_answer(self):
        with self._passed:
            passed = self._answers
            self._passed.wait_for(lambda: self._answers > passed, timeout=0.5)

    def close(self):
        """Closes the network: no client gets through any more."""
        self.open = False
        self._listening.close()


def end_connection(end):
    """Ends a connection, even if bytes wait in it."""
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextmanager
def bad_network(port, share=0.02, seed=0, **more):
    """Yields a bad network in front of the server at a port."""
    network = BadNetwork(port, share, seed, **more)
    try:
        yield network
    finally:
        network.close()
