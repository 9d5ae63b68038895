#!/bin/sh
# Run a command that needs the network, three times at most; its last exit code is this script's.
status=1
for attempt in 1 2 3; do
    "$@" && exit 0
    status=$?
    [ "$attempt" = 3 ] && break
    echo "\`$*\` ended with $status (its reason is above); trying again in ${RETRY_PAUSE:-10} s" >&2
    sleep "${RETRY_PAUSE:-10}"
done
exit "$status"
