# Makes the inside of a machine: runs as its first process, with the machine's
# directory as $1 and its address as $2. It ends when its standard input does.
mount -t proc proc /proc
hostname "$3"
mount --bind "$1/resolv.conf" /etc/resolv.conf
mount --bind "$1/hosts" /etc/hosts
ip link set lo up
ip link add uplink type veth peer name wire
ip link set wire up
ip link set uplink up
ip address add "$2/24" dev uplink
ip route add default via "${2%.*}.1"
# A child, so that this shell stays and reaps what loses its parent. It is the
# child that says ready, so that it is there from then on.
/bin/sh -c 'echo ready; exec cat >/dev/null' || :
exit 0
