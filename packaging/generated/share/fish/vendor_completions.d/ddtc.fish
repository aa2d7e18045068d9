# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ddtc_global_optspecs
    string join \n v/verbose h/help V/version
end

function __fish_ddtc_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_ddtc_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_ddtc_using_subcommand
    set -l cmd (__fish_ddtc_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c ddtc -n "__fish_ddtc_needs_command" -s v -l verbose -d 'Log each compilation, on standard error; give this option twice to log stages and calls, too'
complete -c ddtc -n "__fish_ddtc_needs_command" -s h -l help -d 'Print help'
complete -c ddtc -n "__fish_ddtc_needs_command" -s V -l version -d 'Print version'
complete -c ddtc -n "__fish_ddtc_needs_command" -f -a "explain" -d 'Show a datatype after every stage: tree with bounds, nest, plan, machine code, times'
complete -c ddtc -n "__fish_ddtc_needs_command" -f -a "check" -d 'Test ddtc or an MPI library with random datatypes, by comparing its results with those of the reference interpreter'
complete -c ddtc -n "__fish_ddtc_needs_command" -f -a "hunt-worker" -d 'Arguments of the hidden verb `hunt-worker`'
complete -c ddtc -n "__fish_ddtc_needs_command" -f -a "draw" -d 'Draw the memory of a datatype: blocks in packed order, gaps, bounds, instances'
complete -c ddtc -n "__fish_ddtc_needs_command" -f -a "report" -d 'Write the findings of `ddtc check --mpi` as an HTML page and as a JSON document'
complete -c ddtc -n "__fish_ddtc_needs_command" -f -a "preload" -d 'Run an MPI program under its own MPI library and the preload library, which packs and unpacks by compiled code'
complete -c ddtc -n "__fish_ddtc_needs_command" -f -a "doctor" -d 'Examine the installation, find out whether the preload library packs and unpacks messages, and say how to fix problems'
complete -c ddtc -n "__fish_ddtc_needs_command" -f -a "tune" -d 'Measure which messages are faster under the preload library, and write its policy table'
complete -c ddtc -n "__fish_ddtc_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ddtc -n "__fish_ddtc_using_subcommand explain" -l kind -d 'What to do with each value. With bytes it is copied, with external32 it is converted, and with a reduction it is combined with the value in memory. The reductions are sum, prod, min, max, band, bor, bxor, land, lor, lxor, minloc, maxloc, replace and no_op. A reduction always shows the stages of unpack. A reduction, a colon and a basic type, as in sum:double, require that all elements are of that type. With copy:TYPE, the stages of a direct copy to the datatype TYPE are shown' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand explain" -l target -l level -d 'Target to plan and emit code for, even if this machine does not run it: baseline, avx2, avx512, avx512+vbmi or neon [default: this machine, at the CPU level of DDTC_TARGET if that is set]' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand explain" -l count -d 'Number of instances. Their sizes are printed, --svg draws them, and the output of --gpu is about packing and unpacking them. The code of the stages does not depend on this number [default: the count of the corpus entry if TYPE names one, otherwise 1]' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand explain" -l svg -d 'Write a picture of the instances, as `ddtc draw` makes it, into this file, whose name must end in .svg' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand explain" -l unpack -d 'Show the stages for unpack instead of pack'
complete -c ddtc -n "__fish_ddtc_using_subcommand explain" -l clif -d 'Emit code with Cranelift, even on machines where ddtc has its own code generator (x86-64), and also print Cranelift\'s IR'
complete -c ddtc -n "__fish_ddtc_using_subcommand explain" -l gpu -d 'Instead of the stages, show how the instances would be packed and unpacked in the memory of an NVIDIA GPU. This prints the kernel and its grid, or the reason why the datatype is not supported. It also prints how many bytes of device memory would be read and written, and an upper bound of the speed, as a share of the speed of a plain copy. Nothing is run, and no GPU is needed'
complete -c ddtc -n "__fish_ddtc_using_subcommand explain" -s v -l verbose -d 'Log each compilation, on standard error; give this option twice to log stages and calls, too'
complete -c ddtc -n "__fish_ddtc_using_subcommand explain" -s h -l help -d 'Print help'
complete -c ddtc -n "__fish_ddtc_using_subcommand check" -l count -d 'Number of instances of TYPE [default: 3 if TYPE is written with constructors, that is, with parentheses; the count of the entry if TYPE names an entry of the corpus; 1 if TYPE is a basic type]' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand check" -l cases -d 'Number of random datatypes [default: 1000; with --mpi, as many as the time allows]' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand check" -l seed -d 'Seed of the random numbers: equal seeds give equal datatypes' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand check" -l mpi -d 'Compare this MPI library with the reference interpreter, in separate processes, so that a crash or a hang of the library is a finding, too' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand check" -l seconds -d 'With --mpi, time limit in seconds. When it is reached, no further case begins, and failing datatypes are not shrunk any further. Calls that hang are still waited for, up to 10 seconds, and the C programs that reproduce the last findings are still run [default: 60, or none if --cases is given]' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand check" -l only -d 'With --mpi, run only the named checks, separated by commas: bounds, pack, unpack, decode, elements, external32, attributes, messages, collectives, commit, truncation [default: all of them]' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand check" -l jobs -d 'With --mpi, number of processes that run at the same time [default: one for each processor]' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand check" -l out -d 'With --mpi, folder for the findings' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand check" -s I -l include -d 'With --mpi, folder that contains the library\'s mpi.h. The C programs that are written to reproduce the findings include this file [default: searched near the library]' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand check" -s v -l verbose -d 'Log each compilation, on standard error; give this option twice to log stages and calls, too'
complete -c ddtc -n "__fish_ddtc_using_subcommand check" -s h -l help -d 'Print help'
complete -c ddtc -n "__fish_ddtc_using_subcommand hunt-worker" -l mpi -d 'The library' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand hunt-worker" -l seed -d 'Where the random numbers start' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand hunt-worker" -l only -d 'Checks of every case' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand hunt-worker" -l place -d 'File for the case in progress' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand hunt-worker" -s v -l verbose -d 'Log each compilation, on standard error; give this option twice to log stages and calls, too'
complete -c ddtc -n "__fish_ddtc_using_subcommand hunt-worker" -s h -l help -d 'Print help'
complete -c ddtc -n "__fish_ddtc_using_subcommand draw" -l count -d 'Number of instances to draw [default: the count of the corpus entry if TYPE names one, otherwise 1]' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand draw" -s o -l output -d 'Write the picture into this file, whose name must end in .svg' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand draw" -l width -d 'Number of bytes in a row [default: chosen so that the rows show the structure of the type]' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand draw" -l colour -l color -d 'When to use colours [default: if standard output is a terminal and NO_COLOR is not set]' -r -f -a "always\t''
never\t''"
complete -c ddtc -n "__fish_ddtc_using_subcommand draw" -l dark -d 'Use colours for a dark background [default: follow the preference of the program that shows the file]'
complete -c ddtc -n "__fish_ddtc_using_subcommand draw" -l ascii -d 'Use only ASCII characters in the terminal [default: only if the locale does not use UTF-8]'
complete -c ddtc -n "__fish_ddtc_using_subcommand draw" -s v -l verbose -d 'Log each compilation, on standard error; give this option twice to log stages and calls, too'
complete -c ddtc -n "__fish_ddtc_using_subcommand draw" -s h -l help -d 'Print help'
complete -c ddtc -n "__fish_ddtc_using_subcommand report" -l program -d 'Print the C program FILE of a finding together with what it includes, as one file' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand report" -l findings -d 'Render the texts of published findings: their documents, differences.md, and the comments at the head of their programs. The records of the findings are in the folders of DIR' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand report" -s v -l verbose -d 'Log each compilation, on standard error; give this option twice to log stages and calls, too'
complete -c ddtc -n "__fish_ddtc_using_subcommand report" -s h -l help -d 'Print help'
complete -c ddtc -n "__fish_ddtc_using_subcommand preload" -l mode -d 'When datatypes are compiled: never (off or interpret), usually after enough bytes were moved (lazy), or for packing at commit and for unpacking at the first unpack (commit)' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand preload" -l target -d 'CPU level of the compiled code: baseline, avx2, avx512 or neon' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand preload" -l report -d 'Write a report of what was converted to this file, or to standard error if FILE is `-`. The report is JSON if the name ends in .json, and text otherwise' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand preload" -l record -d 'Record the datatypes that the program commits, in the format of a corpus file, one file per rank' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand preload" -l library -d 'Use this preload library [default: the one next to this program or in ../lib]' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand preload" -l check -d 'Compare every pack and unpack with the interpreter and with the MPI library'
complete -c ddtc -n "__fish_ddtc_using_subcommand preload" -l perf-map -d 'Write the names of compiled functions to /tmp/perf-PID.map, for the profiler perf'
complete -c ddtc -n "__fish_ddtc_using_subcommand preload" -l dry-run -d 'Print the environment and the command instead of running it'
complete -c ddtc -n "__fish_ddtc_using_subcommand preload" -s v -l verbose -d 'Log each compilation, on standard error; give this option twice to log stages and calls, too'
complete -c ddtc -n "__fish_ddtc_using_subcommand preload" -s h -l help -d 'Print help'
complete -c ddtc -n "__fish_ddtc_using_subcommand doctor" -l program -d 'Also examine whether the preload library can be loaded into the program FILE' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand doctor" -l mpi -d 'Use this MPI library [default: the first one that fits the launcher, searched next to the launcher, then in LD_LIBRARY_PATH, then in the loader\'s search path]' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand doctor" -l library -d 'Use this preload library [default: the one next to this program or in ../lib]' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand doctor" -l seconds -d 'Time limit in seconds for each command that the doctor starts' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand doctor" -l rank -d 'Run as a rank of the MPI program that `ddtc doctor` launches' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand doctor" -l load -d 'Load the MPI library, and print its version' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand doctor" -s v -l verbose -d 'Log each compilation, on standard error; give this option twice to log stages and calls, too'
complete -c ddtc -n "__fish_ddtc_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c ddtc -n "__fish_ddtc_using_subcommand tune" -l mpicc -d 'Compiler command of the MPI library' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand tune" -l rounds -d 'Number of rounds for each payload' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand tune" -l budget -d 'Duration of a round in milliseconds' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand tune" -l output -d 'File to which the policy table is written [default: ddtc/policy in the user\'s configuration folder]' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand tune" -l files -d 'Folder in which files are written and read for measurements [default: a temporary folder]' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand tune" -l proofs -d 'File for proofs: records of the calls that gave right results in tests under an MPI library that the developers of ddtc have not tried [default: ddtc/proofs in the user\'s configuration folder]' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand tune" -l deadline -d 'Seconds after which a message counts as lost, when calls are tested under an MPI library that the developers of ddtc have not tried' -r
complete -c ddtc -n "__fish_ddtc_using_subcommand tune" -l library -d 'Use this preload library [default: the one next to this program or in ../lib]' -r -F
complete -c ddtc -n "__fish_ddtc_using_subcommand tune" -l windows -d 'Measure one-sided operations, too'
complete -c ddtc -n "__fish_ddtc_using_subcommand tune" -l only-prove -d 'Only test calls under an MPI library that the developers of ddtc have not tried, and write the proof; measure nothing'
complete -c ddtc -n "__fish_ddtc_using_subcommand tune" -s v -l verbose -d 'Log each compilation, on standard error; give this option twice to log stages and calls, too'
complete -c ddtc -n "__fish_ddtc_using_subcommand tune" -s h -l help -d 'Print help'
complete -c ddtc -n "__fish_ddtc_using_subcommand help; and not __fish_seen_subcommand_from explain check hunt-worker draw report preload doctor tune help" -f -a "explain" -d 'Show a datatype after every stage: tree with bounds, nest, plan, machine code, times'
complete -c ddtc -n "__fish_ddtc_using_subcommand help; and not __fish_seen_subcommand_from explain check hunt-worker draw report preload doctor tune help" -f -a "check" -d 'Test ddtc or an MPI library with random datatypes, by comparing its results with those of the reference interpreter'
complete -c ddtc -n "__fish_ddtc_using_subcommand help; and not __fish_seen_subcommand_from explain check hunt-worker draw report preload doctor tune help" -f -a "hunt-worker" -d 'Arguments of the hidden verb `hunt-worker`'
complete -c ddtc -n "__fish_ddtc_using_subcommand help; and not __fish_seen_subcommand_from explain check hunt-worker draw report preload doctor tune help" -f -a "draw" -d 'Draw the memory of a datatype: blocks in packed order, gaps, bounds, instances'
complete -c ddtc -n "__fish_ddtc_using_subcommand help; and not __fish_seen_subcommand_from explain check hunt-worker draw report preload doctor tune help" -f -a "report" -d 'Write the findings of `ddtc check --mpi` as an HTML page and as a JSON document'
complete -c ddtc -n "__fish_ddtc_using_subcommand help; and not __fish_seen_subcommand_from explain check hunt-worker draw report preload doctor tune help" -f -a "preload" -d 'Run an MPI program under its own MPI library and the preload library, which packs and unpacks by compiled code'
complete -c ddtc -n "__fish_ddtc_using_subcommand help; and not __fish_seen_subcommand_from explain check hunt-worker draw report preload doctor tune help" -f -a "doctor" -d 'Examine the installation, find out whether the preload library packs and unpacks messages, and say how to fix problems'
complete -c ddtc -n "__fish_ddtc_using_subcommand help; and not __fish_seen_subcommand_from explain check hunt-worker draw report preload doctor tune help" -f -a "tune" -d 'Measure which messages are faster under the preload library, and write its policy table'
complete -c ddtc -n "__fish_ddtc_using_subcommand help; and not __fish_seen_subcommand_from explain check hunt-worker draw report preload doctor tune help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
