"""A network between a client and a store that loses requests and answers, is slow, and tells the client to wait."""

import random
import socket
import threading
import time
from contextlib import contextmanager, suppress

BLOCK = 65_536
VERBS = (b"GET ", b"PUT ", b"POST", b"HEAD", b"DELE")
BUSY = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\nRetry-After: 0\r\n\r\n"


class BadNetwork:
    """Passes bytes on between clients and a server of this machine, and fails now and then.

    Args:
        port: the port of the server.
        share: the share of the blocks of bytes that something happens to: a request is lost, an answer is lost, the
            client is told to wait, or the block is late.
        seed: decides what happens when.

    Attributes:
        port: the port at which clients reach the server.
        happened: how often each kind of failure happened.
        open: whether the network passes anything on.
    """

    def __init__(self, port, share, seed):
        self._server, self.share, self._luck = port, share, random.Random(seed)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.happened = {"request lost": 0, "answer lost": 0, "busy": 0, "late": 0}
        self.open = True
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
                if not self.open or not self._let_through(block, source, asks):
                    break
                sink.sendall(block)
        except OSError:
            pass
        for end in (source, sink):
            end_connection(end)

    def _let_through(self, block, source, asks):
        if self._luck.random() >= self.share:
            return True
        kind = self._luck.choice(["late", "busy", "request lost"] if asks else ["late", "answer lost"])
        if kind == "busy" and block[:4] not in VERBS:
            return True
        self.happened[kind] += 1
        if kind == "late":
            time.sleep(self._luck.uniform(0.1, 1.0))
            return True
        if kind == "busy":
            source.sendall(BUSY)
        return False

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
def bad_network(port, share=0.02, seed=0):
    """Yields a bad network in front of the server at a port."""
    network = BadNetwork(port, share, seed)
    try:
        yield network
    finally:
        network.close()
