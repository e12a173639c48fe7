"""Makes a wheel with a large file in it, which is an archive with three files that describe it: wheel.py WHEEL FILE."""
import sys
import zipfile

wheel, large = sys.argv[1:]
info = "hello_gateway-1.0.dist-info"
with zipfile.ZipFile(wheel, "w") as archive:
    archive.writestr("hello_gateway/__init__.py", "print('hello from upstream')\n")
    archive.write(large, "hello_gateway/large.bin")
    archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: hello-gateway\nVersion: 1.0\n")
    archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    archive.writestr(f"{info}/RECORD", "")
