# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of the Python package: the module, and the C library compiled for this machine.

A build backend of PEP 517 for pip, and a program:

    pip install .                                    (in the top directory of the tree)
    python3 segment-api/python/gpuseg_wheel.py DIR   (writes the wheel to DIR)

It needs Python's own modules, make and a C compiler, and no network: a fresh virtual environment has neither setuptools nor
wheel everywhere. The library lies in the package, so that neither LD_LIBRARY_PATH nor GPUSEG_LIBRARY is needed.
"""
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = HERE.parent
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that ZIP knows: the same sources give the same wheel


def version():
    header = (LIBRARY / "include" / "gpuseg.h").read_text()
    return ".".join(re.search(rf"#define GPUSEG_VERSION_{part}\s+(\d+)", header).group(1)
                    for part in ("MAJOR", "MINOR", "PATCH"))


def tag():
    """py3: no extension module, so any Python 3. The library makes it a wheel of this platform."""
    return "py3-none-" + re.sub(r"[^A-Za-z0-9]", "_", sysconfig.get_platform())


def compile_libraries():
    """Compiles libgpuseg and the client of the virtual GPU in a directory of their own; the files by their names."""
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "BUILD")}
    targets = [f"build/wheel/{name}" for name in ("libgpuseg.so", "libgpuseg_sim.so")]
    try:
        subprocess.run(["make", "-s", "-C", str(LIBRARY), "BUILD=build/wheel", *targets], check=True, env=environment)
    except FileNotFoundError:
        raise SystemExit("gpuseg: make is missing; install make and a C compiler (Debian: apt install make gcc)") from None
    except subprocess.CalledProcessError as e:
        raise SystemExit(f"gpuseg: the C library cannot be compiled (make: status {e.returncode}); see the lines above") from None
    return {f"{pathlib.Path(target).name}.0": (LIBRARY / target).read_bytes() for target in targets}


def metadata():
    return (f"Metadata-Version: 2.1\nName: gpuseg\nVersion: {version()}\nSummary: Mark GPU segments for the gpuseg "
            "real-time scheduler\nLicense: Apache-2.0\nRequires-Python: >=3.8\nClassifier: Operating System :: POSIX :: Linux\n")


def content():
    """What the wheel contains, by path: everything but RECORD."""
    info = f"gpuseg-{version()}.dist-info"
    files = {f"gpuseg/{path.name}": path.read_bytes() for path in sorted((HERE / "gpuseg").glob("*.py"))}
    files.update({f"gpuseg/{name}": data for name, data in compile_libraries().items()})
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: gpuseg_wheel ({version()})\nRoot-Is-Purelib: false\n"
                              f"Tag: {tag()}\n").encode()
    files[f"{info}/LICENSE"] = (LIBRARY.parent / "LICENSE").read_bytes()
    return info, files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517: returns the name of the file."""
    info, files = content()
    record = "".join("{},sha256={},{}\n".format(
        path, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), len(data))
        for path, data in files.items()) + f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    name = f"gpuseg-{version()}-{tag()}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in path else 0o644) << 16
            wheel.writestr(entry, data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517. The source is the tree: a part of it would not build."""
    raise SystemExit("gpuseg: there is no source distribution; use the tree, or a wheel")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: gpuseg_wheel.py DIRECTORY")
    os.makedirs(sys.argv[1], exist_ok=True)
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))
