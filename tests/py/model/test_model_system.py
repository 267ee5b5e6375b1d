"""The model over a system: each call that its engine makes of a partition against that partition's model, each reply
against what a system adds, while letters between partitions are lost, doubled and late.

make model ARGS="--partitions 3 --steps 100000"     runs long
"""

import os

import pytest

from driving.run import LENGTH, run
from driving.system import SystemDriver
from servers import RedisServer


@pytest.fixture(scope="module")
def driver():
    with RedisServer() as server:
        driver = SystemDriver(server.socket)
        yield driver
        driver.close()


def test_partitions_and_their_models_agree(driver):
    # A seed that stays, so that a build tells of the change that is built; long runs take others.
    seed = os.environ.get("JQ_MODEL_SEED", "8")
    print("JQ_MODEL_SEED =", seed)
    run(driver, seed, 5 * LENGTH)
    assert driver.brought > 20


def test_four_partitions_by_scripts_alone():
    with RedisServer() as server:
        driver = SystemDriver(server.socket, "scripts", 4)
        run(driver, "four", LENGTH)
        driver.close()
