"""A plain connection to Redis."""

import socket

import hiredis
from redis.exceptions import ResponseError


class Connection:
    """Redis over a unix socket, one command at a time, replies as they come. A client of the library does more than
    twice the system calls, and tests of the model are mostly such commands."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.reader = hiredis.Reader(replyError=ResponseError, notEnoughData=False)

    def send(self, *command):
        """The reply, or of an error ResponseError is raised."""
        self.say(*command)
        return self.read()

    def say(self, *command):
        self.socket.sendall(hiredis.pack_command(command))

    def read(self):
        while (reply := self.reader.gets()) is False:
            some = self.socket.recv(65536)
            if not some:
                raise ConnectionError("the server has closed the connection")
            self.reader.feed(some)
        if isinstance(reply, ResponseError):
            raise reply
        return reply

    def close(self):
        self.socket.close()
