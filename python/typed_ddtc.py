"""Tests the type annotations of the module ddtc: mypy must accept this program of a user.

A line that ends in a comment `type: ignore` is wrong on purpose. mypy warns of each such comment
that is not needed, so the test fails if the annotations permit the wrong line.
"""

import array
import mmap
from typing import assert_type

import ddtc
from ddtc import Committed, CudaLayout, Datatype, Drawing

column: Datatype = Datatype.vector(3, 1, 4, ddtc.DOUBLE)
assert_type(Datatype("int"), Datatype)
assert_type(Datatype.struct([1, 2], (0, 8), [ddtc.INT, ddtc.TWOINT]).extent, int)
assert_type(Datatype.subarray([4, 4], [2, 2], [1, 1], ddtc.FLOAT, order="F"), Datatype)
assert_type(column.commit(), Committed)
assert_type({column: 1}[column], int)

# Buffers may be any objects that support the buffer protocol.
committed = column.commit()
memory = array.array("d", range(12))
packed = bytearray(committed.packed_size(count=1))
assert_type(committed.pack(memory, packed), int)
assert_type(committed.packed(memoryview(memory)), bytes)
assert_type(committed.unpack(packed, mmap.mmap(-1, 96), origin=0), int)
assert_type(column.draw(count=2), Drawing)
assert_type(column.draw().svg, str)



# Device buffers may be any objects with __dlpack__ or __cuda_array_interface__.
class Array:
    def __init__(self) -> None:
        self.__cuda_array_interface__: dict[str, object] = {"version": 3}


def exchange(array: Array, target: memoryview) -> int:
    with CudaLayout(committed, device=0) as layout:
        assert_type(layout, CudaLayout)
        assert_type(layout.unit, int)
        layout.unpack(target, array, count=2, origin=8, stream=7)
        return layout.pack_range(array, target, 16, stream=0)


try:
    Datatype.vector(-1, 1, 1, ddtc.INT)
except ddtc.Error as error:
    assert_type(error, ddtc.Error)
    assert isinstance(error, ValueError)

if __debug__ is False:
    Datatype.contiguous("3", ddtc.INT)  # type: ignore[arg-type]
    Datatype.subarray([4], [2], [1], ddtc.INT, order="A")  # type: ignore[arg-type]
    committed.pack([1, 2, 3], packed)  # type: ignore[arg-type]
    column.size = 3  # type: ignore[misc]
    CudaLayout(committed).pack(Array(), packed)  # type: ignore[call-arg]
    CudaLayout(committed).pack(3, packed, stream=0)  # type: ignore[arg-type]
    ddtc.NO_SUCH_TYPE  # type: ignore[attr-defined]
