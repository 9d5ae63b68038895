"""What is compiled, and where a build keeps its files; all else is said in setup.cfg.

Without a compiler the package works, hashing slower: the extension is optional.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.egg_info import egg_info


def scratch_folder() -> str:
    """A folder for this build alone, which goes when the process ends."""
    folder = tempfile.mkdtemp(prefix="grid-build-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class ScratchBuild(build):
    """Builds outside the tree, so that nothing is left in it, and nothing of an older build gets into a new one."""

    def initialize_options(self) -> None:
        """Start from a folder of our own instead of ./build."""
        super().initialize_options()
        self.build_base = scratch_folder()


class ScratchEggInfo(egg_info):
    """Keeps its notes outside the tree, except for a source distribution, which they are a part of."""

    def initialize_options(self) -> None:
        """Start from a folder of our own instead of ./src."""
        super().initialize_options()
        if not {"sdist", "develop", "editable_wheel"} & set(self.distribution.commands):
            self.egg_base = scratch_folder()


setup(
    cmdclass={"build": ScratchBuild, "egg_info": ScratchEggInfo},
    # multi_buffer.c calls nothing of Python: the library is loaded by cffi, and one wheel serves every CPython from 3.11 on.
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    ext_modules=[
        Extension(
            # The library keeps its name, so that one that is built already is found.
            "grid.crypto._lanes",
            sources=["src/grid/crypto/multi_buffer.c"],
            depends=["setup.py"],
            extra_compile_args=["-O2", "-fvisibility=hidden"],
            py_limited_api=True,
            optional=True,
        )
    ],
)
