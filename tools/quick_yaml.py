"""YAML as `safe_load` reads it, by libyaml where PyYAML was built with it: a tenth of the time for a whole API."""

from __future__ import annotations

from typing import Any

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(text: str | bytes) -> Any:
    return yaml.load(text, Loader=LOADER)
