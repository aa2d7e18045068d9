// Test with a C++ program that uses RAII for handles, lambdas as callbacks, and std::thread. It
// calls the C functions of MPI, because MPI has had no C++ bindings since version 3.0.
#include <mpi.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(int code)
{
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int n = 0;
        MPI_Error_string(code, text, &n);
        throw std::runtime_error(std::string(text, n));
    }
}

class Type {
public:
    static Type vector(int count, int length, int stride, MPI_Datatype old)
    {
        Type t;
        check(MPI_Type_vector(count, length, stride, old, &t.handle));
        check(MPI_Type_commit(&t.handle));
        return t;
    }
    Type dup() const
    {
        Type t;
        check(MPI_Type_dup(handle, &t.handle));
        return t;
    }
    Type(Type &&other) noexcept : handle(other.handle) { other.handle = MPI_DATATYPE_NULL; }
    Type(const Type &) = delete;
    Type &operator=(const Type &) = delete;
    ~Type()
    {
        if (handle != MPI_DATATYPE_NULL) MPI_Type_free(&handle);
    }
    MPI_Datatype handle = MPI_DATATYPE_NULL;

private:
    Type() = default;
};

void require(bool condition, const char *what)
{
    if (!condition) throw std::logic_error(what);
}
#define REQUIRE(condition) require(condition, #condition)

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int keyval = MPI_KEYVAL_INVALID, copies = 0;
    check(MPI_Type_create_keyval(
        [](MPI_Datatype, int, void *extra, void *in, void *out, int *flag) {
            ++*static_cast<int *>(extra);
            *static_cast<void **>(out) = new int(*static_cast<int *>(in) + 1);
            *flag = 1;
            return static_cast<int>(MPI_SUCCESS);
        },
        [](MPI_Datatype, int, void *value, void *) {
            delete static_cast<int *>(value);
            return static_cast<int>(MPI_SUCCESS);
        },
        &keyval, &copies));
    {
        Type t = Type::vector(4, 1, 3, MPI_DOUBLE);
        check(MPI_Type_set_attr(t.handle, keyval, new int(41)));
        std::vector<std::thread> threads;
        std::vector<std::string> wrong(4);
        for (int k = 0; k < 4; ++k)
            threads.emplace_back([&, k] {
                std::vector<double> source(64), packed(8);
                for (std::size_t i = 0; i < source.size(); ++i) source[i] = double(k) + double(i) / 64;
                for (int round = 0; round < 200; ++round) {
                    int position = 0;
                    check(MPI_Pack(source.data(), 1, t.handle, packed.data(), 64, &position, MPI_COMM_SELF));
                    for (int i = 0; i < 4; ++i)
                        if (packed[i] != source[3 * i]) wrong[k] = "wrong value";
                }
            });
        for (auto &thread : threads) thread.join();
        for (auto &w : wrong) REQUIRE(w.empty());
        Type d = t.dup();
        void *value = nullptr;
        int flag = 0;
        check(MPI_Type_get_attr(d.handle, keyval, &value, &flag));
        REQUIRE(flag && *static_cast<int *>(value) == 42 && copies == 1);
    }
    check(MPI_Type_free_keyval(&keyval));
    bool thrown = false;
    try {
        Type::vector(-1, 1, 1, MPI_INT);
    } catch (const std::runtime_error &e) {
        thrown = std::string(e.what()).find("count = -1") != std::string::npos;
    }
    REQUIRE(thrown);
    MPI_Finalize();
}
