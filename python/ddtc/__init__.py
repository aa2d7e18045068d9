"""The derived datatype compiler, which compiles MPI datatypes to native pack and unpack code.

>>> import ddtc
>>> column = ddtc.Datatype.vector(3, 1, 4, ddtc.DOUBLE)
>>> column
Datatype('vector(3,1,4,double)')
>>> memory = bytes(range(96))
>>> column.commit().packed(memory) == memory[0:8] + memory[32:40] + memory[64:72]
True
"""

from . import _ddtc
from ._ddtc import Committed, CudaLayout, Datatype, Error
from ._draw import Drawing

__version__ = _ddtc.__version__

# The named types of C and Fortran have MPI's names without the prefix: BYTE, INT, DOUBLE,
# C_FLOAT_COMPLEX, INTEGER and so on. A name of Python cannot begin with a digit, so 2INT is called
# TWOINT, as in mpi4py.
_NAMED = {("TWO" + name[1:] if name[0] == "2" else name): named for name, named in Datatype.named_types().items()}
globals().update(_NAMED)

__all__ = ["Committed", "CudaLayout", "Datatype", "Drawing", "Error", "__version__", *_NAMED]
