"""What the build of jobgate-server cannot take from pyproject.toml: the place of the bundled directories."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
# Top-level names that are too common for site-packages; app/bundled finds them in both places. The dashboard is
# bundled if it was built.
BUNDLED = ("examples", "migrations", "dashboard/built")


class BuildWithBundled(build_py):
    """Copies the bundled directories into app/bundled of a wheel. An editable installation reads the checkout."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        # The programs of examples/clients call a gateway, which does not read them.
        ignored = shutil.ignore_patterns("__pycache__", "clients")
        for name in BUNDLED:
            if not (ROOT / name).is_dir():
                self.announce(f"{name} is left out: it does not exist")
                continue
            target = Path(self.build_lib, "app", "bundled", name)
            shutil.copytree(ROOT / name, target, ignore=ignored, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithBundled})
