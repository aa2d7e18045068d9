"""Tests the Python module ddtc. The command `python test_ddtc.py` runs the tests.

The test of the wheel (preload/tests/hosts/wheel.rs) installs the module and runs this command.
"""

import pickle
import threading
import unittest

import numpy as np
from mpi4py import MPI

import ddtc
from ddtc import Datatype


class Constructors(unittest.TestCase):
    def test_named_types_are_attributes(self):
        self.assertEqual(ddtc.TWOINT, Datatype("2int"))
        self.assertTrue(all(name.isidentifier() and hasattr(ddtc, name) for name in ddtc.__all__))

    def test_each_is_its_text(self):
        d, i = ddtc.DOUBLE, ddtc.INT
        for made, text in [
            (Datatype.contiguous(3, d), "contiguous(3,double)"),
            (Datatype.vector(3, 2, 4, d), "vector(3,2,4,double)"),
            (Datatype.hvector(3, 2, 40, d), "hvector(3,2,40,double)"),
            (Datatype.indexed([1, 2], [0, 3], i), "indexed([1,2],[0,3],int)"),
            (Datatype.hindexed([1, 2], [0, 30], i), "hindexed([1,2],[0,30],int)"),
            (Datatype.indexed_block(2, [0, 3], i), "indexed_block(2,[0,3],int)"),
            (Datatype.hindexed_block(2, [0, 30], i), "hindexed_block(2,[0,30],int)"),
            (Datatype.struct([1, 1], [0, 8], [i, d]), "struct([1,1],[0,8],[int,double])"),
            (Datatype.subarray([4, 6], [2, 3], [1, 2], i), "subarray([4,6],[2,3],[1,2],C,int)"),
            (Datatype.resized(-4, 16, i), "resized(-4,16,int)"),
        ]:
            self.assertEqual(made, Datatype(text))
            self.assertEqual(hash(made), hash(Datatype(text)))
            self.assertEqual(pickle.loads(pickle.dumps(made)), made)
        self.assertNotEqual(Datatype.vector(3, 1, 2, d), Datatype.vector(3, 1, 2, i))
        self.assertNotEqual(d, "double")

    def test_refusals_name_the_argument(self):
        for call, part in [
            (lambda: Datatype("vector(3, 1"), "expected"),
            (lambda: Datatype.vector(-1, 1, 2, ddtc.INT), "count = -1"),
            (lambda: Datatype.indexed([1, 2], [0], ddtc.INT), "displacements"),
            (lambda: Datatype.subarray([4], [2], [0], ddtc.INT, order="X"), "order = 'X'"),
            (lambda: Datatype.contiguous(1 << 62, ddtc.DOUBLE), "64 bits"),
        ]:
            with self.assertRaisesRegex(ddtc.Error, part):
                call()
        self.assertTrue(issubclass(ddtc.Error, ValueError))
        with self.assertRaises(OverflowError):
            Datatype.contiguous(1 << 64, ddtc.INT)

    def test_drawings(self):
        picture = Datatype("vector(2, 1, 3, int)").draw(count=2)
        self.assertIn("svg", picture._repr_svg_())
        self.assertRegex(picture._repr_html_(), '^<img alt="memory of 2 x vector[(]2,1,3,int[)]" style="max-width: 100%')
        self.assertGreater(len(str(picture).splitlines()), 2)
        with self.assertRaisesRegex(ValueError, "at most"):
            Datatype.indexed_block(1, list(range(0, 200000, 2)), ddtc.INT).draw()


class Buffers(unittest.TestCase):
    def test_views_of_every_stride(self):
        cube = np.arange(4 * 6 * 8, dtype="i4").reshape(4, 6, 8)
        for view in [cube, cube[::2], cube[:, ::-1, 1:3], cube.T, cube[1:1], cube[2, 3, 4:5], cube[::-1, ::-1, ::-1], cube[..., 5]]:
            committed = Datatype.from_array(view).commit()
            packed = committed.packed(view)
            self.assertEqual(packed, view.tobytes(), view.strides)
            copied = np.zeros_like(cube)
            into = np.lib.stride_tricks.as_strided(copied, view.shape, view.strides) if min(view.strides) > 0 else None
            if into is not None:
                committed.unpack(packed, into)
                np.testing.assert_array_equal(into, view)

    def test_nothing_is_copied(self):
        source = np.arange(1 << 20, dtype="f8")
        target = np.zeros(1 << 19, dtype="f8")
        committed = Datatype.vector(1 << 19, 1, 2, ddtc.DOUBLE).commit()
        self.assertEqual(committed.pack(source, target), 4 << 20)
        np.testing.assert_array_equal(target, source[::2])
        back = np.zeros_like(source)
        self.assertEqual(committed.unpack(memoryview(target), back), 4 << 20)
        np.testing.assert_array_equal(back[::2], source[::2])
        self.assertFalse(back[1::2].any())

    def test_origins_and_counts(self):
        t = Datatype.resized(-8, 16, Datatype.hindexed([1], [-8], ddtc.DOUBLE))
        memory = np.arange(6.0)
        self.assertEqual(t.true_lb, -8)
        self.assertEqual(t.commit().packed(memory, count=3, origin=8), memory[::2].tobytes())
        with self.assertRaises(ddtc.Error):
            t.commit().packed(memory, count=3)

    def test_refusals(self):
        committed = Datatype.vector(4, 1, 2, ddtc.DOUBLE).commit()
        room, memory = bytearray(32), np.zeros(8)
        for call, part in [
            (lambda: committed.pack(memory[:5], room), "src|bound"),
            (lambda: committed.pack(memory, bytearray(31)), "dst"),
            (lambda: committed.pack(memory, bytes(32)), "writable"),
            (lambda: committed.unpack(room, memory.tobytes()), "writable"),
            (lambda: committed.pack(memory, np.zeros(8)[::2]), "contiguous"),
            (lambda: committed.pack(memory, memory), "overlap"),
            (lambda: committed.packed(memory, origin=-1), "origin = -1"),
            (lambda: committed.packed(memory, count=1 << 60), "count"),
            # The packed bytes would not fit in memory, but the source is found too short first.
            (lambda: committed.packed(memory, count=1 << 44), "src.len"),
        ]:
            with self.assertRaisesRegex(ddtc.Error, part):
                call()
        with self.assertRaises(TypeError):
            committed.packed("text")
        with self.assertRaises(OverflowError):
            committed.packed(memory, count=-1)

    def test_threads_run_meanwhile(self):
        source = np.arange(1 << 22, dtype="u1")
        committed = Datatype.vector(1 << 21, 1, 2, ddtc.BYTE).commit()
        wanted, got = source[::2].tobytes(), [None] * 4

        def work(i):
            for _ in range(5):
                got[i] = committed.packed(source)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(got, [wanted] * 4)


class Foreign(unittest.TestCase):
    def test_dtypes(self):
        for dtype, text in [
            ("i4", "int32_t"),
            (np.float64, "double"),
            ("c16", "c_double_complex"),
            ("S5", "contiguous(5,byte)"),
            (("f4", (2, 3)), "contiguous(2,contiguous(3,float))"),
            ([("a", "u1"), ("b", "f4", (3,))], "resized(0,13,struct([1,1],[0,1],[uint8_t,contiguous(3,float)]))"),
        ]:
            self.assertEqual(Datatype.from_dtype(np.dtype(dtype)), Datatype(text))
        record = np.dtype([("a", "i1"), ("b", [("c", "f8"), ("d", "?")])], align=True)
        array = np.zeros(7, record)
        array["b"]["c"] = np.arange(7)
        committed = Datatype.from_dtype(record).commit()
        self.assertEqual(committed.packed_size(7), 7 * 10)
        back = np.zeros(7, record)
        committed.unpack(committed.packed(array, count=7), back, count=7)
        np.testing.assert_array_equal(back["b"]["c"], array["b"]["c"])
        for bad in ["O", ">i4", [("a", ">f8")]]:
            with self.assertRaises(TypeError):
                Datatype.from_dtype(np.dtype(bad))
        with self.assertRaisesRegex(TypeError, "from_array"):
            Datatype.from_array(3)

    def test_handles_of_mpi4py(self):
        column = MPI.DOUBLE.Create_vector(5, 1, 3)
        made = [
            (column, "vector(5,1,3,double)"),
            (MPI.INT.Create_indexed([1, 2], [0, 3]), "indexed([1,2],[0,3],int)"),
            (MPI.FLOAT.Create_subarray([4, 6], [2, 3], [1, 2]), "subarray([4,6],[2,3],[1,2],C,float)"),
            (MPI.Datatype.Create_struct([1, 2], [0, 200], [MPI.CHAR, column]), "struct([1,2],[0,200],[char,vector(5,1,3,double)])"),
            (MPI.BYTE.Dup(), "dup(byte)"),
        ]
        for handle, text in made:
            packed, memory = bytearray(handle.size), (bytearray(range(256)) * 8)[: handle.extent]
            ours = Datatype.from_mpi(handle)
            handle.Commit()
            handle.Pack(memory, packed, 0, MPI.COMM_SELF)
            self.assertEqual(ours.commit().packed(memory), bytes(packed), text)
            self.assertEqual((ours.size, ours.extent), (handle.size, handle.extent))
            self.assertEqual(ours, Datatype(text))
        [handle.Free() for handle, _ in made]
        self.assertEqual(Datatype.from_mpi(MPI.LONG_DOUBLE), ddtc.LONG_DOUBLE)
        with self.assertRaises(TypeError):
            Datatype.from_mpi(3)
        with self.assertRaises((MPI.Exception, ValueError)):
            Datatype.from_mpi(MPI.DATATYPE_NULL)


if __name__ == "__main__":
    unittest.main()
