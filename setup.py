"""The one part that is compiled; all else is said in setup.cfg. Without a compiler the package works, hashing slower."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "grid.crypto._lanes",
            sources=["src/grid/crypto/lanes.c"],
            depends=["setup.py"],
            extra_compile_args=["-O2", "-fvisibility=hidden"],
            optional=True,
        )
    ]
)
