"""The words in which an upload says that it could not spread its shares well enough. [spec placement 6.1]

Pure. The first sentence of each message is what programs written for 1.20 look for.
"""

from __future__ import annotations


def describe_unhappiness(server_count: int, reached: int, k: int, happy: int, share_count: int) -> str:
    """server_count: servers holding or accepting any share; reached: servers of happiness; share_count: distinct."""
    enough = f"such that any {k} of them have enough shares to recover the file"
    if server_count < k and reached < happy:
        return (
            f"shares could be placed or found on only {server_count} server(s). "
            f"We were asked to place shares on at least {happy} server(s) {enough}."
        )
    if reached < k and reached < happy:
        return (
            f"shares could be placed or found on {server_count} server(s), but they are not spread out evenly enough "
            f"to ensure that any {k} of these servers would have enough shares to recover the file. "
            f"We were asked to place shares on at least {happy} servers {enough}."
        )
    if reached < happy:
        return (
            f"shares could be placed on only {reached} server(s) {enough}, "
            f"but we were asked to place shares on at least {happy} such servers."
        )
    return f"only {share_count} distinct shares could be placed or found, but {k} are needed to recover the file."
