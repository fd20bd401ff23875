#!/bin/bash
# Two "hosts" on this machine, network namespaces with a slow link between them:
# one that learns, one that acts. Needs root, ip and tc.
#
#   benchmarks/two_hosts.sh 1000 python benchmarks/cluster.py --ray_address=auto \
#       --workers=4
#
# runs the command on the first one, with 1000 Mbit/s between them. The command
# finds the speed, in MB/s, in LINK_MB_PER_S.
set -eu
mbit=$1
shift
export RAY_AUTH_MODE=disabled RAY_USAGE_STATS_ENABLED=0
ray=$(dirname "$(command -v python)")/ray
pids=
end() {
  kill $pids 2> /dev/null || true
  wait
  ip netns del learner
  ip netns del actors
}
ip netns add learner
ip netns add actors
trap end EXIT
ip link add left netns learner type veth peer name right netns actors
for side in "learner left 10.77.0.1" "actors right 10.77.0.2"; do
  read -r host device address <<< "$side"
  ip -n "$host" address add "$address/24" dev "$device"
  ip -n "$host" link set "$device" up
  ip -n "$host" link set lo up
  tc -n "$host" qdisc add dev "$device" root tbf rate "${mbit}mbit" \
      burst 1mb latency 50ms
done
ip netns exec learner "$ray" start --head --block --num-cpus=0 \
    --node-ip-address=10.77.0.1 --port=6379 --include-dashboard=false \
    > /dev/null 2>&1 &
pids=$!
sleep 15
ip netns exec actors "$ray" start --block --num-cpus=64 \
    --node-ip-address=10.77.0.2 --address=10.77.0.1:6379 > /dev/null 2>&1 &
pids="$pids $!"
sleep 15
LINK_MB_PER_S=$(python -c "print($mbit / 8)") RAY_ADDRESS=10.77.0.1:6379 \
    ip netns exec learner "$@"
