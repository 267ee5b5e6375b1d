"""A plain connection to Redis."""

import socket

import hiredis
from redis.connection import DefaultParser
from redis.exceptions import RedisError


class Connection:
    """Redis over a unix socket, one command at a time, replies as they come. A client of the library does more than
    twice the system calls, and tests of the model are mostly such commands."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.reader = hiredis.Reader(replyError=DefaultParser.parse_error, notEnoughData=False)

    def send(self, *command):
        """The reply; an error is raised as the library would."""
        self.say(command)
        return self.read()

    def say(self, *commands):
        """Without waiting for the replies, which are read one by one."""
        self.socket.sendall(b"".join(map(hiredis.pack_command, commands)))

    def read(self):
        while (reply := self.reader.gets()) is False:
            some = self.socket.recv(65536)
            if not some:
                raise ConnectionError("the server has closed the connection")
            self.reader.feed(some)
        if isinstance(reply, RedisError):
            raise reply
        return reply

    def close(self):
        self.socket.close()
