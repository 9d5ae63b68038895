#!/bin/sh
# start-node introducer|storage|gateway: make the node in /var/lib/grid/node at its first start, then run it.
set -eu
umask 077
kind=$1
node=/var/lib/grid/node
grid=/opt/grid/bin/grid
shared=/run/grid/introducer.furl

if [ ! -d "$node" ]; then
    case $kind in
    introducer)
        "$grid" create introducer "$node" --port tcp:3458 --location "tcp:$(hostname):3458"
        ;;
    storage | gateway)
        # The introducer writes its address into the volume that all share.
        until [ -s "$shared" ]; do sleep 0.2; done
        if [ "$kind" = storage ]; then
            "$grid" create storage "$node" --introducer "$(cat "$shared")" --port tcp:3457 --location "tcp:$(hostname):3457"
        else
            "$grid" create client "$node" --introducer "$(cat "$shared")" --needed 2 --happy 3 --total 3
        fi
        ;;
    *)
        echo "start-node: $kind is no kind of node" >&2
        exit 2
        ;;
    esac
fi

case $kind in
introducer)
    (
        until [ -s "$node/private/introducer.furl" ]; do sleep 0.2; done
        cp "$node/private/introducer.furl" "$shared.new" && mv "$shared.new" "$shared"
    ) &
    exec "$grid" run "$node"
    ;;
storage) exec "$grid" run "$node" ;;
gateway) exec "$grid" gateway "$node" --listen tcp:3456:interface=0.0.0.0 ;;
esac
