"""An engine and a model beside it, for the tests of a file."""

import pytest

from driving.driver import Driver
from servers import RedisServer


@pytest.fixture(scope="module")
def driver():
    with RedisServer() as server:
        driver = Driver(server.socket)
        yield driver
        driver.close()
