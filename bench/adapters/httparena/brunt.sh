# scripts/lib/tools/brunt.sh: brunt in place of wrk, h2load and h2load-h3.
#
# To use it: copy this file into scripts/lib/tools, and add to benchmark.sh (and benchmark-lite.sh),
# behind the line that reads the last of the other tools:
#
#     source "$SOURCE_DIR/tools/brunt.sh"
#
# brunt takes the command lines of these tools and prints their text. So the functions of the other
# files in this folder still build the command lines and read the results, and all that this file
# does is to have brunt run them. What an endpoint asks for is written down once, there. ghz stays:
# brunt has no streams of gRPC.
#
# No drop-in of brunt leaves out a warm-up. So what the server's CPU time is divided by is all that
# it answered.

# The program; or a command in its place, which is split at blanks.
: "${BRUNT:=brunt}"
: "${BRUNT_CMD:=}"
: "${BRUNT_IMAGE:=brunt:local}"

# The board's own choice, kept under another name. Read twice, the file keeps the first.
if ! declare -F _brunt_in_place_of >/dev/null; then
    eval "_brunt_in_place_of() $(declare -f endpoint_tool | tail -n +2)"
fi

endpoint_tool() {
    local tool
    tool=$(_brunt_in_place_of "$1")
    case "$tool" in
        wrk|h2load|h2load-h3) echo brunt ;;
        *)                                echo "$tool" ;;
    esac
}

# Ends the board's run. `fail` would end only the subshell that the board calls a tool in, and zeros
# would be saved, which look like a server that answered nothing.
_brunt_end() {
    echo "[FAIL] brunt: $*" >&2
    kill -TERM $$
    exit 1
}

# How to call brunt.
_brunt_cmd() {
    if [ -n "$BRUNT_CMD" ]; then
        echo "$BRUNT_CMD"
    elif [ "${LOADGEN_DOCKER:-false}" != true ] && command -v "$BRUNT" >/dev/null; then
        echo "$BRUNT"
    elif docker image inspect "$BRUNT_IMAGE" >/dev/null 2>&1; then
        echo "docker run --rm --network host --cpuset-cpus=$GCANNON_CPUS" \
            "--security-opt seccomp=unconfined" \
            "--ulimit memlock=-1:-1 --ulimit nofile=1048576:1048576" \
            "-v $REQUESTS_DIR:$REQUESTS_DIR:ro $BRUNT_IMAGE"
    else
        _brunt_end "neither a program '$BRUNT' nor an image '$BRUNT_IMAGE'. To build the image:
      docker build -t $BRUNT_IMAGE -f docker/brunt.Dockerfile docker/"
    fi
}

# Usage: brunt_build_args <endpoint> <conns> <pipeline> <duration> [req_per_conn]
# One word a line, as the other tools do it, with the words that call brunt before them.
brunt_build_args() {
    local tool command
    tool=$(_brunt_in_place_of "$1")
    command=$(_brunt_cmd) || return
    case "$tool" in
        wrk)       WRK_CMD="$command wrk" wrk_build_args "$@" ;;
        h2load)    H2LOAD_CMD="$command h2load" h2load_build_args "$@" ;;
        h2load-h3) H2LOAD_H3_CMD="$command h2load" h2load_h3_build_args "$@" ;;
        *)         fail "brunt_build_args: nothing of brunt's stands in for '$tool'" ;;
    esac
}

# Runs the words of brunt_build_args. Standard output alone is the result; on standard error brunt
# says what limited the run. Where nothing could be run, every entry would fail alike: that ends the
# board's run. Any other failure, such as a server that is gone, is one of the entry.
brunt_run() {
    local word output code=0
    [ "$#" -gt 0 ] || _brunt_end "no command line; the reason is above"
    for word in "$@"; do
        if [ "$word" = "--split--" ]; then
            # Two at once.
            h2load_run "$@"
            return
        fi
    done
    output=$(timeout 60 taskset -c "$GCANNON_CPUS" "$@") || code=$?
    case "$code" in
        0)             [ -n "$output" ] || _brunt_end "printed no result" ;;
        2|125|126|127) _brunt_end "nothing was run (exit code $code); the reason is above" ;;
        *)             warn "brunt: exit code $code" ;;
    esac
    printf '%s\n' "$output"
}

# Usage: brunt_parse <endpoint> <output>
brunt_parse() {
    local tool
    tool=$(_brunt_in_place_of "$1")
    "${tool//-/_}_parse" "$@"
}
