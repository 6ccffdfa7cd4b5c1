"""``UntypedStorage``: memory maps of files, sizes, and the device in DLPack's format."""

import sys

import numpy
import pytest

import retrograd as torch
from retrograd.utils.dlpack import DLDeviceType


@pytest.mark.parametrize("shared", [False, True])
def test_from_file(tmp_path, shared):
    path = tmp_path / "bytes"
    numpy.arange(10, dtype=numpy.float32).tofile(path)
    before = path.read_bytes()
    storage = torch.UntypedStorage.from_file(str(path), shared, 40)
    assert storage.nbytes() == 40
    assert torch.equal(torch.tensor([]).set_(storage, 2, (3,), (1,)), torch.tensor([2.0, 3.0, 4.0]))
    storage[0] = 255
    assert (path.read_bytes() != before) == shared


def test_sizeof_counts_the_memory():
    storage = torch.ones(1000).untyped_storage()
    assert 4000 < sys.getsizeof(storage) < 4200


def test_dlpack_device_is_an_enumeration():
    kind, index = torch.ones(2).__dlpack_device__()
    assert kind is DLDeviceType.kDLCPU and index == 0
