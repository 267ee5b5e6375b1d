"""A plain connection to Redis."""

from redis.connection import UnixDomainSocketConnection


class Connection:
    """Redis over a unix socket, one command at a time, replies as they come."""

    def __init__(self, socket):
        self.connection = UnixDomainSocketConnection(path=str(socket), socket_timeout=60, protocol=2)
        self.connection.connect()

    def send(self, *command):
        self.connection.send_command(*command)
        return self.connection.read_response()

    def read(self):
        return self.connection.read_response()

    def close(self):
        self.connection.disconnect()
