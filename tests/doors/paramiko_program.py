"""paramiko at an SFTP door: paramiko_program.py PORT KEY FOLDER. Stores, reads in parts, lists, renames, removes; prints "done"."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable
from pathlib import Path

import paramiko


def main(port: int, key: str, folder: Path) -> None:
    """Use every method of paramiko's client that the door has something for."""
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
    client.connect("127.0.0.1", port, "alice", key_filename=key, look_for_keys=False, allow_agent=False)
    sftp = client.open_sftp()
    sftp.mkdir("paramiko", 0o700)
    sftp.chdir("paramiko")
    assert sftp.getcwd() == "/paramiko"
    large = folder / "large"
    assert sftp.put(str(large), "large").st_size == large.stat().st_size
    sftp.get("large", str(folder / "paramiko-back"))
    assert (folder / "paramiko-back").read_bytes() == large.read_bytes()
    with sftp.open("large", "rb") as file:
        parts = [bytes(part) for part in file.readv([(0, 10), (5_000_000, 70_000), (11_999_990, 100)])]
    whole = large.read_bytes()
    assert parts == [whole[:10], whole[5_000_000:5_070_000], whole[11_999_990:12_000_090]]
    with sftp.open("large", "r+b") as file:
        file.seek(6_000_000)
        file.write(b"changed")
    with sftp.open("large", "rb") as file:
        file.seek(5_999_999)
        assert file.read(9) == whole[5_999_999:6_000_000] + b"changed" + whole[6_000_007:6_000_008]
    with sftp.open("text", "w") as file:
        file.write("one\n")
    with sftp.open("text", "a") as file:
        file.write("two\n")
    with sftp.open("text") as file:
        assert file.readlines() == ["one\n", "two\n"]
    sftp.truncate("text", 4)
    sftp.chmod("text", 0o640)
    sftp.utime("text", (1_000_000_000, 1_000_000_001))
    found = sftp.stat("text")
    assert (found.st_size, stat.S_IMODE(found.st_mode or 0), found.st_mtime) == (4, 0o640, 1_000_000_001)
    sftp.posix_rename("text", "large")
    assert sftp.listdir() == ["large"] and sftp.normalize("../paramiko/./x") == "/paramiko/x"
    attempts: tuple[Callable[[], object], ...] = (
        lambda: sftp.symlink("large", "link"),
        lambda: sftp.rmdir("/paramiko"),
        lambda: sftp.open("none"),
    )
    for refused in attempts:
        try:
            refused()
        except OSError:
            continue
        raise AssertionError("it was not refused")
    sftp.remove("large")
    sftp.rmdir("/paramiko")
    client.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
    print("done")
