"""Build step of the wheel: it carries the built Lua scripts and the OpenAPI files. All else: pyproject.toml.

An editable install carries neither: the package then builds the scripts from the checkout when it needs them.
"""

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "python"))

from jqmaster.bundle import build as luabuild  # noqa: E402 - it needs nothing but the standard library


class BuildWithData(build_py):
    def run(self):
        super().run()
        if self.editable_mode:
            return
        package = Path(self.build_lib) / "jqmaster"
        for name in ("lua", "openapi"):
            shutil.rmtree(package / name, ignore_errors=True)
        luabuild.dump(luabuild.build(ROOT), package / "lua")
        (package / "openapi").mkdir()
        for path in sorted((ROOT / "openapi").glob("*.yaml")):
            shutil.copy(path, package / "openapi" / path.name)


setup(cmdclass={"build_py": BuildWithData})
