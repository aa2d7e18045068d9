# A recipe for Spack that nobody has built with Spack yet. packaging/recipes/README.md says what was
# checked of it. Spack should build ddtc with it from a checkout: put this file into a Spack
# repository of your own and run `spack dev-build -d /path/to/ddtc ddtc@0.3.0`.

from spack.package import *


class Ddtc(Package):
    """The derived datatype compiler, which compiles MPI derived datatypes to native code that packs
    and unpacks. It comes as a library to preload into unchanged MPI programs, and as a C library
    for runtimes."""

    license("MIT OR Apache-2.0", checked_by="ddtc")

    # No archive of the sources has been published yet, so this version has no address to fetch
    # from. `spack dev-build` takes the sources from a checkout.
    version("0.3.0")

    variant("static", default=False, description="Install the static C library too")
    variant("yaksa", default=False, description="Install the replacement for yaksa of MPICH too")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("binutils", type="build")

    conflicts("platform=darwin", msg="ddtc is for Linux with glibc")
    conflicts("platform=windows", msg="ddtc is for Linux with glibc")

    def install(self, spec, prefix):
        arguments = ["--prefix", prefix, "--no-debug"]
        if spec.satisfies("+static"):
            arguments.append("--static")
        if spec.satisfies("+yaksa"):
            arguments += ["--only", "cli,preload,capi,yaksa"]
        Executable("packaging/install.sh")(*arguments)

    def setup_run_environment(self, env):
        env.prepend_path("PATH", self.prefix.bin)
