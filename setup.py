"""Build step of the wheel: it carries the built Lua scripts and the OpenAPI files; and what the package index shows:
the README with links that lead somewhere there. All else: pyproject.toml.

An editable install carries neither: the package then builds the scripts from the checkout when it needs them.
"""

import re
import shutil
import sys
import tomllib
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


HOME = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["jqmaster"]["home"].rstrip("/")
FILES = f"{HOME}/blob/v{luabuild.__version__}"


def described():
    """The README as others show it. Links within the checkout lead to the project's home; without one they are text."""
    link = re.compile(r"\[([^]]*)]\((?!https?:|#)([^)]+)\)")
    return link.sub(rf"[\1]({FILES}/\2)" if HOME else r"\1", (ROOT / "README.md").read_text())


setup(
    cmdclass={"build_py": BuildWithData},
    long_description=described(),
    long_description_content_type="text/markdown",
    project_urls={
        "Homepage": HOME,
        "Documentation": f"{FILES}/docs",
        "Changelog": f"{FILES}/CHANGELOG.md",
        "Issues": f"{HOME}/issues",
    }
    if HOME
    else {},
)
