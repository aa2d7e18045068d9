# shellcheck shell=bash
# Functions for builds from Debian's source packages: steps that are done once, and fetching a
# source package. Sourced by tests/runtime.sh and tests/openmpi.sh. Needs $cache, fail and step.

# Runs a step, unless its stamp holds the same words: once NAME WORDS COMMAND.. Writes the output
# into $cache/NAME.log and the stamp $cache/NAME.done.
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

# Unpacks source package $1 of version $2, whose original archive has SHA-256 $3, in $cache/source.
# Uses a list and folders of its own, so that the system's configuration of apt stays as it is. $4
# names a mirror; if it is empty, the one that the system's packages come from is used.
source_package() {
    local name=$1 version=$2 sha256=$3 mirror=$4 apt=$cache/apt key=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/*$') ||
        { echo "the configuration of apt names no mirror of Debian: set the variable *_MIRROR that the head of the script describes"; return 1; }
    [ -e "$key" ] || { echo "$key is missing, which checks the source package: apt-get install debian-archive-keyring"; return 1; }
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    echo "deb-src [signed-by=$key] $mirror bookworm main" >"$apt/sources.list"
    local options=(-q -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$apt/lists"
        -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=)
    # For apt a list that cannot be fetched is only a warning. The next command fails in this case.
    apt-get "${options[@]}" update &&
        (cd "$cache" && apt-get "${options[@]}" source --only-source --download-only "$name=$version") &&
        echo "$sha256  $cache/${name}_${version%-*}.orig.tar.xz" | sha256sum --check --quiet &&
        rm -rf "$cache/source" && dpkg-source -x "$cache/${name}_$version.dsc" "$cache/source"
}
