"""An engine and a model beside it, in an empty namespace for each test, which they agree about in the end."""

import pytest

from driving.driver import Driver
from servers import RedisServer


@pytest.fixture(scope="module")
def shared():
    with RedisServer() as server:
        driver = Driver(server.socket)
        yield driver
        driver.close()


@pytest.fixture
def driver(shared):
    shared.fresh()
    yield shared
    shared.run(["settle", {}, 0])
