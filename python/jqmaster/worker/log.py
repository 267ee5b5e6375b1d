"""The worker's own loggers."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any


class Log(logging.LoggerAdapter[logging.Logger]):
    """What a handler or filter of the program raises, or one whose stream a job has closed, ends nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name), None)

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        with suppress(Exception):
            super().log(level, msg, *args, **{"stacklevel": 2, **kwargs})
