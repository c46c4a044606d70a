# The first process of a machine. $1 is its directory, $2 its host name, $3 is "stay"
# for a machine that outlives whoever made it; otherwise it ends with its input.
mount -t proc proc /proc
hostname "$2"
mount --bind "$1/resolv.conf" /etc/resolv.conf
mount --bind "$1/hosts" /etc/hosts
if [ "$3" = stay ]; then
	# A pipe that this process holds open at both ends: nothing ever comes.
	rm -f "$1/hold"
	mkfifo "$1/hold"
	exec 0<>"$1/hold"
fi
# A child, so that this shell stays and reaps what loses its parent. It is the
# child that says ready, so that it is there from then on.
/bin/sh -c 'echo ready; exec cat >/dev/null' || :
exit 0
