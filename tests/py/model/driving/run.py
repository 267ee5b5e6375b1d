"""Random sequences for the model test, how a failing one is made small enough to read, the command line."""

import argparse
import ast
import os
import random
import re
import time
import traceback

from driving.driver import FORM, WRONG, Driver
from model.common import ErrorReply
from servers import RedisServer

SHRINKING_S = float(os.environ.get("JQ_MODEL_SHRINKING_S", "300"))
LENGTH = 300  # operations of a sequence; each begins with an empty namespace


def replay(driver, operations):
    """What goes wrong when these operations run on an empty namespace, or None."""
    driver.fresh()
    for operation in operations:
        try:
            driver.run(operation)
        except WRONG as error:
            return error
    return None


def random_sequence(driver, seed, length=LENGTH):
    """Runs one random sequence. Gives its operations and what went wrong, or None."""
    driver.fresh()
    generator = driver.generator(seed)
    operations = []
    for _ in range(length):
        operations.append(generator.next() if operations else generator.first())
        try:
            driver.run(operations[-1])
        except WRONG as error:
            return operations, error
    return operations, None


def smaller(value):
    """The same with one thing left out, for everything that it holds."""
    parts = range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
    for part in parts:
        if isinstance(value, dict):
            yield {k: v for k, v in value.items() if k != part}
        else:
            yield value[:part] + value[part + 1 :]
    for part in parts:
        for less in smaller(value[part]):
            if isinstance(value, dict):
                yield value | {part: less}
            else:
                yield [*value[:part], less, *value[part + 1 :]]


def kind(error):
    """What a disagreement is: what is said of it, but for ids and numbers, and where in the model."""
    places = [frame.name for frame in traceback.extract_tb(error.__traceback__)][1:]
    said = re.sub("[0-9a-f]{14}|[0-9]+", "", str(error).split("\n")[0])
    refusals = [tuple(detail[:2]) for detail in getattr(error, "details", ()) if isinstance(detail, ErrorReply)]
    return type(error), list(dict.fromkeys(places)), said, refusals


def shrink(driver, operations, error, until=None):
    """Leaves out operations, and then parts of them, as long as the same thing still goes wrong."""
    until = until or time.monotonic() + SHRINKING_S

    def fails(candidate):
        if time.monotonic() > until:
            return False
        other = replay(driver, candidate)
        return other is not None and kind(other) == kind(error)

    size = len(operations) // 2
    while size:
        first = 0
        while first < len(operations):
            candidate = operations[:first] + operations[first + size :]
            if fails(candidate):
                operations = candidate
            else:
                first += size
        size //= 2
    for number, (script, fields, label) in enumerate(operations):
        for less in smaller(fields):
            candidate = [*operations[:number], [script, less, label], *operations[number + 1 :]]
            if fails(candidate):
                return shrink(driver, candidate, error, until)
    return operations


def report(driver, seed, operations, error):
    small = shrink(driver, operations, error)
    last = replay(driver, small) or error
    trace = "".join(traceback.format_exception(last))
    listing = "\n".join(f"    {operation!r}," for operation in small)
    return f"seed {seed}: {len(small)} operations disagree\n{trace}\nOPERATIONS = [\n{listing}\n]\n"


def run(driver, seed, steps, progress=lambda done: None):
    """Random sequences until so many steps are done."""
    for number in range(-(-steps // LENGTH)):
        own_seed = f"{seed}/{number}"
        operations, error = random_sequence(driver, own_seed)
        if error is not None:
            raise AssertionError(report(driver, own_seed, operations, error))
        progress((number + 1) * LENGTH)


def main(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--form", choices=["functions", "scripts"], default=FORM)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)))
    parser.add_argument("--one", help="the seed of one sequence, as a failure prints it")
    parser.add_argument("--replay", help="file with OPERATIONS = [...], as a failure prints it")
    options = parser.parse_args()
    begun = time.monotonic()

    def progress(done):
        if done % (LENGTH * 100) == 0:
            print(f"{done} steps, {done / (time.monotonic() - begun):.0f}/s", flush=True)

    with RedisServer() as server:
        driver = Driver(server.socket, options.form)
        if options.replay:
            with open(options.replay) as file:
                operations = ast.literal_eval(file.read().split("OPERATIONS = ", 1)[1].strip())
            error = replay(driver, operations)
            if error is not None:
                traceback.print_exception(error)
            return int(error is not None)
        if options.one:
            operations, error = random_sequence(driver, options.one)
            print("agreed" if error is None else report(driver, options.one, operations, error))
            return int(error is not None)
        print("seed", options.seed)
        try:
            run(driver, options.seed, options.steps, progress)
        except AssertionError as failure:
            print(failure)
            return 1
    print(f"{options.steps} steps agreed")
    return 0
