# Packs, unpacks and sends derived datatypes through mpi4py, and prints the number of wrong results.
# mpi4py loads the MPI library outside of the global scope and uses the large-count functions if the
# library has them.
from array import array

from mpi4py import MPI

wrong = 0
comm = MPI.COMM_WORLD
data = array("d", range(1000))


def check(ok):
    global wrong
    wrong += not ok


for n in range(2, 40):
    t = MPI.DOUBLE.Create_vector(n, 2, 5).Commit()
    duplicate = t.Dup()
    one = 5 * (n - 1) + 2  # number of elements that one instance spans
    for datatype in (t, duplicate, t, duplicate):
        out = bytearray(datatype.Get_size() + 8)
        position = datatype.Pack(memoryview(data)[:one], out, 8, comm)
        check(position == 8 + 16 * n)
        values = memoryview(out)[8:position].cast("d").tolist()
        check(values == [data[5 * i + j] for i in range(n) for j in range(2)])
        back = array("d", [-1.0]) * 1000
        position = datatype.Unpack(out, 8, memoryview(back)[:one], comm)
        check(position == 8 + 16 * n)
        mapped = {5 * i + j for i in range(n) for j in range(2)}
        check(all(back[i] == (data[i] if i in mapped else -1) for i in range(1000)))
    if n % 2:
        t.Free()
    duplicate.Free()
struct = MPI.Datatype.Create_struct([1, 3], [0, 16], [MPI.INT, MPI.FLOAT]).Create_resized(0, 32).Commit()
for _ in range(3):
    out = bytearray(160)
    check(struct.Pack(memoryview(data).cast("B")[:320], out, 0, comm) == 160)
    expected = b"".join(bytes(memoryview(data).cast("B")[32 * i + a:32 * i + b]) for i in range(10) for a, b in ((0, 4), (16, 28)))
    check(bytes(out) == expected)
# Send messages from this process to itself, and complete the requests with each function that
# mpi4py has for it.
for n in range(2, 40):
    t = MPI.DOUBLE.Create_vector(n, 2, 5).Commit()
    one = 5 * (n - 1) + 2
    for way in range(10):
        back = array("d", [-1.0]) * one
        status = MPI.Status()
        receive = MPI.COMM_SELF.Irecv([back, 1, t], source=0, tag=3)
        send = MPI.COMM_SELF.Isend([data, 1, t], dest=0, tag=3)
        requests = [receive, send]
        if way == 0:
            MPI.Request.Waitall(requests)
        elif way == 1:
            while not MPI.Request.Testall(requests):
                pass
        elif way == 2:
            for _ in requests:
                MPI.Request.Waitany(requests)
        elif way == 3:
            left = 2
            while left:
                left -= len(MPI.Request.Waitsome(requests))
        elif way == 4:
            while not receive.Get_status():
                pass
        elif way == 5:
            while not receive.Test(status):
                pass
            check(status.Get_count(t) == 1 and status.Get_elements(t) == 2 * n)
        elif way == 6:
            try:
                while not MPI.Request.Get_status_all(requests):
                    pass
            except NotImplementedError:  # Open MPI 5.0 without the preload library lacks it.
                receive.Wait()
        elif way in (7, 8):
            try:
                if way == 7:
                    while not MPI.Request.Get_status_any([MPI.REQUEST_NULL, receive])[1]:
                        pass
                else:
                    while 0 not in MPI.Request.Get_status_some(requests):
                        pass
            except NotImplementedError:
                receive.Wait()
        else:
            receive.Wait(status)
            check(status.Get_count(t) == 1)
        mapped = {5 * i + j for i in range(n) for j in range(2)}
        check(all(back[i] == (data[i] if i in mapped else -1) for i in range(one)))
        MPI.Request.Waitall(requests)
    t.Free()
print("wrong", wrong)
