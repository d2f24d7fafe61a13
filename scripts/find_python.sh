# Sets $python to the first interpreter that answers; sourced by run and test.
python=
for candidate in python3 python python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "ofa-tui needs Python 3.11, 3.12 or 3.13; install one and call this again." >&2
    exit 2
fi
