"""Packs a folder into a wheel: the same folder and time give the same bytes.

wheel.py FOLDER RECORD WHEEL SECONDS: RECORD is the path, in the wheel, of the list of files with
their sums; all files bear the time SECONDS since 1970.
"""

import base64
import hashlib
import pathlib
import sys
import time
import zipfile


def main():
    folder, record, wheel, seconds = sys.argv[1:]
    folder = pathlib.Path(folder)
    moment = time.gmtime(int(seconds))[:6]
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = []
    with zipfile.ZipFile(wheel, "w") as archive:

        def add(name, content, mode):
            entry = zipfile.ZipInfo(name, moment)
            entry.create_system = 3  # Unix, so that the mode counts.
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)

        for path in paths:
            name = path.relative_to(folder).as_posix()
            content = path.read_bytes()
            add(name, content, path.stat().st_mode & 0o777)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
            lines.append(f"{name},sha256={digest.decode().rstrip('=')},{len(content)}\n")
        lines.append(f"{record},,\n")
        add(record, "".join(lines), 0o644)


main()
