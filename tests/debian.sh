# shellcheck shell=bash

# Functions for tests that build MPI libraries from sources: `once` does a step of a build only if it
# was not done before, `need_packages` installs Debian packages, `source_package` fetches and unpacks
# a source package of Debian, and `unpack` unpacks an archive.
# The scripts tests/runtime.sh, mpich-cma.sh, mpich-ch3.sh, openmpi.sh and openmpi/suites.sh source
# this file. They must define the variable $cache, a folder, and the functions `fail` and `step` before.

# Runs a step of a build, unless an earlier run completed it: once NAME WORDS COMMAND.. When COMMAND
# succeeds, the function writes WORDS, which describe the input of the step, to $cache/NAME.done. If
# that file already has the same WORDS, the step is not run again. The output of COMMAND goes to
# $cache/NAME.log.
once() {
    local name=$1 words=$2
    shift 2
    [ "$(cat "$cache/$name.done" 2>/dev/null)" = "$words" ] && return
    rm -f "$cache/$name.done"
    step "$name: $words"
    if ! "$@" >"$cache/$name.log" 2>&1; then
        tail -n 20 "$cache/$name.log" >&2
        fail "the step $name failed: above is the end of its output, all of which is in $cache/$name.log"
    fi
    printf '%s\n' "$words" >"$cache/$name.done"
}

# Makes the folder $cache, turns $cache into an absolute path, and takes the folder's lock until the
# script ends. $1 is the name of the variable that chooses the folder.
take_cache() {
    mkdir -p "$cache"
    cache=$(cd "$cache" && pwd)
    exec 9>"$cache/lock"
    flock -n 9 || fail "another run uses $cache: wait for its end, or name another folder in $1"
}

# Makes the folder $cache ready for other sources than those that it has: removes the stamps of all
# steps and the results of tests, since they are about builds of the old sources.
forget_builds() {
    rm -f "$cache"/*.done "$cache"/{results,python}.tsv
}

# Fetches the source package $1 of version $2, checks that its original archive has the SHA-256 hash
# $3, and unpacks it in $cache/source. The function uses a list of sources and folders of its own,
# so that the system's configuration of apt stays as it is. $4 is the address of a mirror of Debian.
# If $4 is empty, the function uses the mirror from which the system gets its own packages.
source_package() {
    local name=$1 version=$2 sha256=$3 mirror=$4 apt=$cache/apt key=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/*$') ||
        { echo "the configuration of apt names no mirror of Debian: set the variable *_MIRROR that the head of the script describes"; return 1; }
    [ -e "$key" ] || { echo "$key is missing, which checks the source package: apt-get install debian-archive-keyring"; return 1; }
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    echo "deb-src [signed-by=$key] $mirror bookworm main" >"$apt/sources.list"
    local options=(-q -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$apt/lists"
        -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=)
    # If `apt-get update` cannot fetch a list, it only warns and succeeds. The next command,
    # `apt-get source`, then fails.
    apt-get "${options[@]}" update &&
        (cd "$cache" && apt-get "${options[@]}" source --only-source --download-only "$name=$version") &&
        echo "$sha256  $cache/${name}_${version%-*}.orig.tar.xz" | sha256sum --check --quiet &&
        forget_builds && rm -rf "$cache/source" && dpkg-source -x "$cache/${name}_$version.dsc" "$cache/source"
}

# Makes sure that the packages in the arguments are there. Installs those that are missing if the
# script runs as root.
need_packages() {
    command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
        fail "apt-get and dpkg are missing: this test needs Debian's tools and packages; run it on Debian 12"
    local package missing=()
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    # For gcc, g++, make, perl and python3, it suffices that there is a command of that name. It
    # need not come from a Debian package.
    local still=()
    for package in ${missing[@]+"${missing[@]}"}; do
        case $package in gcc | g++ | make | perl | python3) command -v "$package" >/dev/null && continue ;; esac
        still+=("$package")
    done
    [ ${#still[@]} -eq 0 ] && return
    [ "$(id -u)" = 0 ] || fail "packages are missing, and only root may install them: sudo apt-get install ${still[*]}"
    step "installs ${still[*]}"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${still[@]}"; } >"$cache/packages.log" 2>&1 ||
        fail "apt-get install ${still[*]} failed (no network?): see $cache/packages.log"
}

# Unpacks archive $1 in $cache/source, if it has the file $2 of a library's sources. Leaves nothing
# of an archive that could not be unpacked.
unpack() {
    forget_builds && rm -rf "$cache/source" "$cache/source.part" && mkdir "$cache/source.part" &&
        tar -xf "$1" -C "$cache/source.part" --strip-components 1 &&
        { [ -e "$cache/source.part/$2" ] || { echo "$1 has no file $2, so it is another project's archive: name an archive of the sources of the MPI library"; return 1; }; } &&
        mv "$cache/source.part" "$cache/source"
}

# Prints where the builds of archive $1 are kept: outside of target/, since they are large and should
# survive `cargo clean`. $2 is the name of the folder for all archives of the script.
folder_of_archive() {
    echo "${XDG_CACHE_HOME:-$HOME/.cache}/$2/$(basename "$1" | sed 's/\.tar.*//')"
}
