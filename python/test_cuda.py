"""Tests packing in device memory: LD_LIBRARY_PATH=FOLDER python test_cuda.py.

The folder must have the library libcuda.so.1 that gpu/tests/standin builds. This library takes the
place of NVIDIA's driver: it checks the calls of ddtc, and runs the kernels in an interpreter. No
GPU and no package for arrays is needed. preload/tests/hosts/wheel.rs runs this file.
"""

import ctypes
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import ddtc
from ddtc import CudaLayout, Datatype

CUDA = ctypes.CDLL("libcuda.so.1")
CUDA.standin_ordered.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
for name in "standin_ordered", "standin_held", "standin_faults", "standin_calls":
    getattr(CUDA, name).restype = ctypes.c_uint64

# Every second double of a row of 10 doubles.
LAYOUT = "resized(0, 80, hvector(5, 1, 16, double))"


def check(code):
    assert code == 0, f"CUDA error {code}"


def stream():
    made = ctypes.c_void_p()
    check(CUDA.cuStreamCreate(ctypes.byref(made), 1))
    return made.value


def setUpModule():
    check(CUDA.cuInit(0))
    context = ctypes.c_void_p()
    check(CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(CUDA.cuCtxPushCurrent_v2(context))


def tearDownModule():
    # The library that takes the place of the driver counts the modules, events, references to
    # contexts and allocations of device memory that are still held, but no memory that tests
    # allocate. Only one of these objects is left: the reference to the context that setUpModule has
    # retained. So all layouts have unloaded their kernels. The library has also found no mistake in
    # the calls of ddtc.
    assert (CUDA.standin_held(), CUDA.standin_faults()) == (1, 0)


class Memory:
    """Memory that holds the bytes `content`. It is never freed. `call` is the function of the
    driver that allocates it. If `call` is None, it is device memory that the library in place of
    the driver allocates (standin_memory)."""

    def __init__(self, content, call=None, *arguments):
        self.address, self.nbytes = ctypes.c_uint64(), len(content)
        if call is None:
            check(CUDA.standin_memory(ctypes.byref(self.address), bytes(content), ctypes.c_size_t(self.nbytes)))
        else:
            check(getattr(CUDA, call)(ctypes.byref(self.address), ctypes.c_size_t(self.nbytes), *arguments))
            self.upload(content)

    def upload(self, content):
        check(CUDA.standin_upload(self.address, bytes(content), ctypes.c_size_t(len(content))))

    def bytes(self):
        content = ctypes.create_string_buffer(self.nbytes)
        check(CUDA.cuMemcpyDtoH_v2(content, self.address, ctypes.c_size_t(self.nbytes)))
        return content.raw


class Interface:
    """An array with __cuda_array_interface__, as CuPy and Numba have it."""

    def __init__(self, memory, **changes):
        self.memory = memory
        data = memory.address.value, changes.pop("read_only", False)
        self.__cuda_array_interface__ = {"shape": (memory.nbytes,), "typestr": "|u1", "data": data, "version": 3, **changes}


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class DLPack:
    """An array with __dlpack__, as CuPy and PyTorch have it."""

    def __init__(self, memory, device=(2, 0), shape=None, strides=None, bits=8, flags=0, offset=0, major=1):
        self.memory, self.device, self.asked = memory, device, []
        shape = (memory.nbytes * 8 // bits,) if shape is None else shape
        numbers = ctypes.c_int64 * len(shape)
        self.kept = numbers(*shape), strides and numbers(*strides)
        tensor = Tensor(memory.address.value, *device, len(shape), 1, bits, 1, *self.kept, offset)
        self.versioned, self.managed = Versioned(major, 7, flags=flags, tensor=tensor), Managed(tensor)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append((stream, max_version))
        return capsule(ctypes.addressof(self.versioned), b"dltensor_versioned", None)


class Older(DLPack):
    """An array of a library whose version of DLPack is older than 1."""

    def __dlpack__(self, *, stream=None):
        self.asked.append(stream)
        return capsule(ctypes.addressof(self.managed), b"dltensor", None)


def sample(n):
    return bytes((i * 7 + i // 256) % 256 for i in range(n))


def opened(text=LAYOUT, device=0):
    return CudaLayout(Datatype(text).commit(), device)


class Case(unittest.TestCase):
    def refused(self, part, call, error=ddtc.Error):
        with self.assertRaisesRegex(error, part):
            call()


class Transfers(Case):
    def setUp(self):
        self.user, self.committed = sample(800), Datatype(LAYOUT).commit()
        self.packed = self.committed.packed(self.user, count=10)

    def test_there_and_back(self):
        for kind in Interface, DLPack, Older:
            on = stream()
            user, packed, back = Memory(self.user), Memory(bytes(400)), Memory(bytes(800))
            with opened() as layout:
                self.assertEqual((layout.unit, layout.device, layout.datatype), (8, 0, Datatype(LAYOUT)))
                self.assertEqual(layout.pack(kind(user), kind(packed), 10, stream=on), 400)
                self.assertEqual(layout.unpack(kind(packed), kind(back), 10, stream=on), 400)
            self.assertEqual(packed.bytes(), self.packed)
            expected = bytearray(800)
            self.committed.unpack(self.packed, expected, count=10)
            self.assertEqual(back.bytes(), expected)

    def test_ranges_and_origins(self):
        user, packed = Memory(self.user), Memory(bytes(48))
        with opened() as layout:
            self.assertEqual(layout.pack_range(Interface(user), Interface(packed), 16, 10, stream=0), 48)
            self.assertEqual(packed.bytes(), self.packed[16:64])
            self.assertEqual(layout.pack_range(Interface(user), Interface(packed), 360, count=10, stream=0), 40)
            self.assertEqual(packed.bytes()[:40], self.packed[360:])
            self.assertEqual(layout.pack_range(Interface(user), Interface(packed), 400, 10, stream=0), 0)
            back = Memory(bytes(800))
            self.assertEqual(layout.unpack_range(Interface(Memory(self.packed[8:40])), Interface(back), 8, 10, stream=0), 32)
            expected = bytearray(800)
            self.committed.unpack(bytes(8) + self.packed[8:40], expected)
            self.assertEqual(back.bytes(), expected)
            # With `origin=80`, displacement 0 is the byte 80 of `user`, where the second instance
            # begins.
            self.assertEqual(layout.pack(Interface(user), DLPack(Memory(bytes(40)), offset=0), origin=80, stream=0), 40)
            target = Memory(bytes(40))
            layout.pack(Interface(user), Interface(target), origin=80, stream=0)
            self.assertEqual(target.bytes(), self.packed[40:80])
            # With `offset=160`, the first element of the array is 160 bytes after the pointer that
            # the array exports.
            layout.pack(DLPack(user, shape=(640,), offset=160), Interface(target), stream=0)
            self.assertEqual(target.bytes(), self.packed[80:120])
            self.assertEqual(layout.pack(Interface(user), Interface(target), 0, stream=0), 0)

    def test_captured_streams(self):
        # An array that names another stream is refused if one of the two streams is captured. An array that names the
        # captured stream, or none, is packed. The capture goes on.
        on, other, packed = stream(), stream(), Memory(bytes(400))
        with opened() as layout:
            check(CUDA.cuStreamBeginCapture_v2(ctypes.c_void_p(on), 0))
            user, target = Memory(self.user), Interface(packed)
            self.refused("user = .*: must name no stream, or a stream of the same capture", lambda: layout.pack(Interface(user, stream=other), target, 10, stream=on))
            self.refused("user = .*: must name no stream, or a stream of the same capture", lambda: layout.pack(Interface(user, stream=on), target, 10, stream=other))
            layout.pack(Interface(user, stream=on), target, 10, stream=on)
            check(CUDA.standin_end_capture(ctypes.c_void_p(on)))
            check(CUDA.standin_replay(ctypes.c_void_p(on)))
            self.assertEqual(packed.bytes(), self.packed)

    def test_dense_arrays_of_any_order(self):
        user, target = Memory(self.user), Memory(bytes(40))
        with opened() as layout:
            for array in [
                Interface(user, shape=(10, 10), typestr="<f8", strides=None),
                Interface(user, shape=(10, 10), typestr="<f8", strides=(80, 8)),
                Interface(user, shape=(10, 10), typestr="<f8", strides=(8, 80)),
                Interface(user, shape=(1, 100), typestr="<f8", strides=(7, 8)),
                Interface(user, shape=(5,), typestr="<U40"),
                DLPack(user, shape=(10, 10), bits=64, strides=(10, 1)),
                DLPack(user, shape=(10, 10), bits=64, strides=(1, 10)),
                DLPack(user, shape=(10, 10), bits=64),
                Older(user, shape=(10, 1, 10), bits=64, strides=(10, 99, 1)),
            ]:
                target.upload(bytes(40))
                self.assertEqual(layout.pack(array, Interface(target), stream=0), 40)
                self.assertEqual(target.bytes(), self.packed[:40])

    def test_pinned_memory_is_accepted(self):
        address = ctypes.c_void_p()
        check(CUDA.cuMemHostAlloc(ctypes.byref(address), ctypes.c_size_t(400), 0))
        pinned = memoryview((ctypes.c_char * 400).from_address(address.value))
        with opened() as layout:
            layout.pack(Interface(Memory(self.user)), pinned, 10, stream=0)
            check(CUDA.cuCtxSynchronize())
        self.assertEqual(pinned.tobytes(), self.packed)

    def test_streams(self):
        class Stream:
            def __cuda_stream__(self):
                return 0, on

        on, other = stream(), stream()
        user, packed = Memory(self.user), Memory(bytes(400))
        with opened() as layout:
            # If an array names a stream, the stream of the call waits for it, unless they are the
            # same.
            layout.pack(Interface(user, stream=other), Interface(packed, stream=on), 10, stream=Stream())
            self.assertEqual((CUDA.standin_ordered(other, on), CUDA.standin_ordered(on, on)), (1, 0))
            calls = CUDA.standin_calls()
            layout.pack(Interface(user, stream=1), Interface(packed, stream=None), 10, stream=0)
            plain = CUDA.standin_calls() - calls
            layout.pack(Interface(user), Interface(packed), 10, stream=0)
            self.assertEqual(CUDA.standin_calls() - calls, 2 * plain, "the null stream is the legacy stream")
            # The method __dlpack__ of an array gets the stream of the call. The library of the
            # array must make this stream wait, so ddtc does not.
            source, older = DLPack(user), Older(packed)
            layout.pack(source, older, 10, stream=on)
            layout.pack(source, older, 10, stream=0)
            self.assertEqual(source.asked, [(on, (1, 0)), (1, (1, 0))])
            self.assertEqual(older.asked, [on, 1])
        self.assertEqual(packed.bytes(), self.packed)


class Example(unittest.TestCase):
    """Runs the example of README.md with stubs of CuPy and mpi4py, once for each rank."""

    def test_a_column_is_sent(self):
        text = Path(__file__).with_name("README.md").read_text()
        example = next(block for block in text.split("```python\n") if block.startswith("import cupy")).split("```")[0]
        message, waits = [], []

        class Array(Interface):
            def reshape(self, *shape):
                return self

        class Stream:
            def __init__(self, non_blocking):
                self.ptr = stream()

            def __enter__(self):
                return self

            def __exit__(self, *exception):
                pass

            def synchronize(self):
                waits.append(self.ptr)
                check(CUDA.cuStreamSynchronize(ctypes.c_void_p(self.ptr)))

        class Communicator:
            def Send(self, buffer, dest):
                message.append(buffer[0].memory.bytes())

            def Recv(self, buffer, source):
                buffer[0].memory.upload(message[0])

        numbers = struct.pack("262144d", *range(262144))
        device = SimpleNamespace(Stream=Stream, Device=lambda: SimpleNamespace(id=0))
        cupy = SimpleNamespace(cuda=device, empty=lambda n: Array(Memory(bytes(8 * n))))
        for rank, matrix in enumerate([numbers, bytes(len(numbers))]):
            world = Communicator()
            world.rank = rank
            cupy.arange = lambda n, dtype: Array(Memory(matrix))
            mpi4py = SimpleNamespace(MPI=SimpleNamespace(COMM_WORLD=world, DOUBLE=None))
            names = {}
            with patch.dict(sys.modules, {"cupy": cupy, "mpi4py": mpi4py}):
                exec(compile(example, "README.md", "exec"), names)
        self.assertEqual(struct.unpack("512d", message[0]), tuple(range(0, 262144, 512)))
        received = names["matrix"].memory.bytes()
        self.assertEqual(struct.unpack("262144d", received), tuple(i if i % 512 == 0 else 0 for i in range(262144)))
        self.assertEqual(len(waits), 2)


class Refusals(Case):
    def test_arguments(self):
        user, packed = Memory(sample(800)), Memory(b"\xa5" * 400)
        array, target = Interface(user), Interface(packed)
        far = ctypes.c_void_p()
        check(CUDA.cuCtxCreate_v2(ctypes.byref(far), 0, 1))
        elsewhere = Memory(bytes(800))
        foreign = stream()
        check(CUDA.cuCtxPopCurrent_v2(ctypes.byref(far)))
        with opened() as layout:
            for part, arguments in [
                # Read-only destinations. A source may be read-only.
                ("pack: packed = a read-only array: must be writable", (array, Interface(packed, read_only=True), 10)),
                ("pack: packed = a read-only array: must be writable", (array, DLPack(packed, flags=1), 10)),
                # Gaps between elements.
                ("user = an array of shape.*strides of .* B: must be contiguous", (Interface(user, shape=(400,), strides=(2,)), target, 10)),
                ("packed = an array of shape.*: must be contiguous", (array, DLPack(packed, shape=(5, 5), strides=(8, 1)), 10)),
                ("user = an array of shape.*: must be contiguous", (Interface(user, shape=(800,), strides=(-1,)), target, 10)),
                # Host memory.
                ("pack: user = 0x.*: must be device memory or pinned host memory", (bytearray(800), target, 10)),
                ("pack: packed = 0x.*: must be device memory or pinned host memory", (array, bytearray(400), 10)),
                ("packed: must be writable", (array, bytes(400), 10)),
                # Other devices and other kinds of memory.
                ("user = an array on device 1: must be on device 0", (DLPack(user, (2, 1)), target, 10)),
                ("user = 0x.*: must be memory of the layout's device", (Interface(elsewhere), target, 10)),
                ("user = managed memory", (DLPack(user, (13, 0)), target, 10)),
                ("user = 0x.*: must not be managed memory", (Interface(Memory(bytes(800), "cuMemAllocManaged", 1)), target, 10)),
                ("packed = an array on a device of DLPack's kind 10: must be in the memory of an NVIDIA GPU", (array, DLPack(packed, (10, 0)), 10)),
                # Lengths.
                ("pack: packed = 400 bytes: must have the 440 packed bytes of 11 instances", (array, target, 11)),
                ("pack: user = 800 bytes: must have at least 872 bytes", (array, Interface(Memory(bytes(440))), 11)),
                ("pack: user = 800 bytes: must have at least 808 bytes", (array, target, 10, 16)),
                ("pack: origin = -1: must be larger by at least 1", (array, target, 1, -1)),
                ("count", (array, target, 1 << 62)),
                ("packed = 0x.*: must not overlap `user`", (array, array, 10)),
                # Faults of __cuda_array_interface__ and of __dlpack__.
                ("user = version 2 .*: must be at least version 3", (Interface(user, version=2), target, 10)),
                ("mask", (Interface(user, mask=array), target, 10)),
                ("typestr", (Interface(user, typestr="|O"), target, 10)),
                ("'stream'.*not 0", (Interface(user, stream=0), target, 10)),
                ("'data'", (Interface(user, data=None), target, 10)),
                ("user = an array of shape.*63 bits", (Interface(user, shape=(1 << 62, 4)), target, 10)),
                ("user = elements of 4 bits", (DLPack(user, bits=4), target, 10)),
                ("packed = a DLPack: must be exported by __dlpack__ without a copy", (array, DLPack(packed, flags=2), 10)),
                ("user = a DLPack: .*version 1", (DLPack(user, major=2), target, 10)),
            ]:
                with self.subTest(part):
                    self.refused(part, lambda: layout.pack(*arguments, stream=0))
            self.refused("unpack: user = a read-only array", lambda: layout.unpack(target, Interface(user, read_only=True), 10, stream=0))
            self.refused("pack_range: offset = 401", lambda: layout.pack_range(array, target, 401, 10, stream=0))
            self.refused("pack: stream = -1", lambda: layout.pack(array, target, 10, stream=-1))
            self.refused("pack: stream = 0x.*primary context", lambda: layout.pack(array, target, 10, stream=foreign))
            self.refused("pack: user = 0x.*primary context", lambda: layout.pack(Interface(user, stream=foreign), target, 10, stream=0))
            self.refused("pack: stream must be .* is a str", lambda: layout.pack(array, target, 10, stream="0"), TypeError)
            self.refused("pack: user must have __dlpack__.* is a list", lambda: layout.pack([1.0], target, 10, stream=0), TypeError)
            self.refused("stream", lambda: layout.pack(array, target, 10), TypeError)
            # Nothing was written by any of these calls.
            self.assertEqual(packed.bytes(), b"\xa5" * 400)
            self.assertEqual(layout.pack(Interface(user, read_only=True), target, 10, stream=0), 400)

    def test_device_arrays_are_not_host_buffers(self):
        committed, memory = Datatype(LAYOUT).commit(), Memory(sample(800))
        for array in Interface(memory), DLPack(memory):
            self.refused("source = .* in device memory: must be host memory", lambda: committed.packed(array))
            self.refused("target = .* in device memory: must be host memory", lambda: committed.pack(bytes(80), array))
            self.refused("target = .* in device memory: must be host memory", lambda: committed.unpack(bytes(40), array))

    def test_layouts_that_are_not_supported(self):
        # An instance has a list of 300000001 blocks.
        long = "struct([1, 1], [0, 8000000000], [hvector(300000000, 1, 16, double), int])"
        self.refused("CudaLayout: committed = .* 300000001 blocks: must have at most 268435456", lambda: opened(long))
        with opened("hvector(3, 1, 4, double)") as layout:
            memory = Interface(Memory(bytes(64)))
            self.refused("unpack: count = 1: must be so few", lambda: layout.unpack(Interface(Memory(bytes(24))), memory, stream=0))

    def test_devices_and_drivers(self):
        self.refused("CudaLayout: device = CUDA error 101", lambda: opened(device=2))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "libcuda.so.1").touch()
            program = "import ddtc; ddtc.CudaLayout(ddtc.DOUBLE.commit())"
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": folder})
        self.assertRegex(done.stderr, "Error: CudaLayout: driver = libcuda.so.1: must be installed")

    def test_closed_layouts(self):
        layout, held = opened(), CUDA.standin_held()
        self.assertRegex(repr(layout), r"^CudaLayout\(Datatype\('.*'\), device=0\)$")
        layout.close()
        layout.close()
        self.assertTrue(layout.closed and held > CUDA.standin_held() and "closed" in repr(layout))
        array = Interface(Memory(bytes(80)))
        self.refused("pack: layout = a closed one", lambda: layout.pack(array, array, stream=0))
        self.refused("unit: layout = a closed one", lambda: layout.unit)
        with self.assertRaises(ZeroDivisionError), opened() as layout:
            1 / 0
        self.assertTrue(layout.closed)
        # While a stream is captured into a graph, close raises an error, and the layout stays open.
        on, layout = stream(), opened()
        check(CUDA.cuStreamBeginCapture_v2(ctypes.c_void_p(on), 0))
        self.refused("close: layout = CUDA error 900", layout.close)
        check(CUDA.standin_end_capture(ctypes.c_void_p(on)))
        self.assertFalse(layout.closed)
        layout.close()


if __name__ == "__main__":
    unittest.main()
