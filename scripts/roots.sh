#!/usr/bin/env bash
# roots.sh: run the README's commands in a bare root of each Debian release, as on a machine
# that was installed a minute ago. As root. make roots calls it.
#
# A root has apt, make, git and sudo, a clone of the last commit, mounts, processes and a /dev of
# its own, and the network of this machine, with its settings of apt, Go and npm. It is left by
# pivot_root, so that namespaces can be made in it, which a chroot forbids. All of it vanishes
# when this script ends, however it ends; the logs stay in out/roots.
#
# Variables:
#   ROOTS="bookworm trixie"   the releases
#   ROOT_USERS="root user"    who runs: root, and an ordinary user who may use sudo
#   RUN="make demo …"         one command, instead of make demo and make test
#   ROOT_GO=/usr/local/go     show this Go to the root, read-only, instead of having Debian's installed
#   ROOT_MODULES=yes          take Go's modules from this machine's cache first
#
# Exit status: 0 every command succeeded, 1 one failed, 2 wrong usage, 3 a root cannot be made.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly roots=${ROOTS:-bookworm trixie} users=${ROOT_USERS:-root user}
readonly out=$PWD/out/roots

die() {
	printf 'roots: %s\n' "$1" >&2
	exit "${2:-3}"
}

# mirror RELEASE prints the address that this machine fetches a release of Debian from.
mirror() {
	# shellcheck disable=SC2016 # the words in $() are apt's
	apt-get indextargets --format '$(RELEASE) $(SITE)' | sed -n "s/^$1 //p" | head -n 1
}

# sources RELEASE prints the lines of apt for a release. Without a mirror mmdebstrap knows one.
sources() {
	local own main security
	# shellcheck source=/dev/null
	own=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
	main=$(mirror "$own") security=$(mirror "$own-security")
	[[ -n $main ]] || return 0
	printf 'deb %s %s main\n' "$main" "$1" "$main" "$1-updates"
	[[ -z $security ]] || printf 'deb %s %s main\n' "$security" "$1-security"
}

# apart [OPTION…] COMMAND… runs a command as process 1 of namespaces, with more options of unshare,
# and waits for it. However this script ends, the namespaces do: the kernel ends every process with the
# first, and removes the mounts with the last.
apart() {
	setpriv --pdeathsig KILL env --default-signal setsid unshare --mount --pid --ipc --uts --fork --kill-child "$@" </dev/null {lock}>&- &
	running=$!
	local status=0
	wait "$running" || status=$?
	running=
	return "$status"
}

# base RELEASE makes the root's archive, unless an earlier call did, and sets archive to its name.
base() {
	local packages=apt,ca-certificates,git,make,mount,passwd,sudo
	sources "$1" >"$work/sources.list"
	apt-config dump Acquire | grep -E '^Acquire::[^ ]*(Proxy|Verify-Peer|CaInfo)' >"$work/apt.conf" || true
	archive=$out/$1-$(cat <(echo "$packages") "$work/sources.list" "$work/apt.conf" | sha256sum | head -c 12).tar
	[[ ! -e $archive ]] || return 0
	printf 'Making a root of %s.\n' "$1"
	local made=("$1" "$work/$1.tar")
	[[ ! -s $work/sources.list ]] || made+=("$work/sources.list")
	apart --mount-proc env TMPDIR="$work" mmdebstrap --quiet --variant=essential --include="$packages" --aptopt="$work/apt.conf" "${made[@]}"
	mv "$work/$1.tar" "$archive"
}

# settings prints, as NAME=VALUE, what a command inside has to know of this machine's ways out.
settings() {
	local name value
	for name in GOPROXY GONOPROXY GOPRIVATE GOSUMDB GONOSUMDB GOINSECURE GOFLAGS; do
		value=$(cd / && go env "$name" 2>/dev/null) || continue
		[[ $name != GOPROXY || -z ${ROOT_MODULES:-} ]] || value=file:///opt/modules,$value
		[[ -z $value ]] || printf '%s=%s\n' "$name" "$value"
	done
	for name in registry cafile proxy https-proxy noproxy; do
		value=$(npm config get "$name" 2>/dev/null) || continue
		[[ -z $value || $value == null || $value == undefined ]] || printf 'npm_config_%s=%s\n' "${name//-/_}" "$value"
	done
	env | grep -E '^((https?|all|no)_proxy|(HTTPS?|ALL|NO)_PROXY|SSL_CERT_FILE|NODE_EXTRA_CA_CERTS)=' || true
}

# furnish ROOT RELEASE gives a fresh root what it takes from this machine, and the clone.
furnish() {
	local root=$1 bundle=/etc/ssl/certs/ca-certificates.crt
	cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"
	printf '127.0.0.1 localhost %s\n' "$2" >"$root/etc/hosts"
	[[ ! -e $bundle ]] || cp "$bundle" "$root$bundle" # it may have authorities of this machine's network
	echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/root" # nobody needs it after a power cut
	git clone --quiet --no-hardlinks . "$root/eidetic"
	settings >"$root/opt/settings"
}

# inside ROOT USER COMMAND runs in namespaces of its own, as process 1.
inside() {
	local root=$1 user=$2 command=$3 name options settings home=/root
	mount --make-rprivate /
	mount --bind "$root" "$root"
	cd "$root"
	hostname "${root##*/}"
	mount -t proc proc proc
	mount -t sysfs sysfs sys
	mount --rbind /sys/fs/cgroup sys/fs/cgroup
	mount -t tmpfs -o mode=755,nosuid dev dev
	mkdir dev/pts dev/shm dev/mqueue dev/net
	for name in null zero full random urandom tty fuse kvm cpu_dma_latency loop-control loop{0..7} net/tun; do
		[[ ! -e /dev/$name ]] || cp -a "/dev/$name" "dev/$name"
	done
	mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
	mount -t tmpfs -o mode=1777,nosuid,nodev shm dev/shm
	mount -t mqueue mqueue dev/mqueue
	ln -s pts/ptmx dev/ptmx
	for name in fd/ stdin/0 stdout/1 stderr/2; do
		ln -s "/proc/self/fd/${name#*/}" "dev/${name%/*}"
	done
	# From 13 on, /tmp is in memory.
	# shellcheck source=/dev/null
	if (($(. etc/os-release && printf '%s' "$VERSION_ID") >= 13)); then
		mount -t tmpfs -o mode=1777,nosuid,nodev tmp tmp
	fi
	if [[ -n ${ROOT_GO:-} ]]; then
		mkdir -p opt/go
		mount --bind -o ro "$ROOT_GO" opt/go
	fi
	if [[ -n ${ROOT_MODULES:-} ]]; then
		mkdir -p opt/modules
		mount --bind -o ro "$(cd / && go env GOMODCACHE)/cache/download" opt/modules
	fi
	mkdir old
	pivot_root . old
	cd /
	umount --lazy /old
	rmdir /old

	readarray -t settings </opt/settings
	options=(--reset-env)
	if [[ $user != root ]]; then
		home=/home/$user
		id "$user" &>/dev/null || useradd --create-home --shell /bin/bash "$user"
		printf '%s ALL=(ALL) NOPASSWD: ALL\n' "$user" >"/etc/sudoers.d/$user"
		options+=(--reuid "$user" --regid "$user" --init-groups)
	fi
	if [[ -d /eidetic ]]; then
		mv /eidetic "$home/eidetic"
		chown -R "$user:" "$home/eidetic"
	fi
	# Not exec: as process 1, this shell takes orphans over.
	setpriv "${options[@]}" env LANG=C.UTF-8 "TERM=${TERM:-dumb}" "${settings[@]}" \
		bash -c "PATH=/opt/go/bin:\$PATH && cd ~/eidetic && $command"
}

if [[ ${1:-} == inside ]]; then
	inside "${@:2}"
	exit
fi
(($# == 0)) || die "it takes variables and no arguments: ROOTS, ROOT_USERS, RUN, ROOT_GO, ROOT_MODULES" 2
((EUID == 0)) || die "only root can make file systems whose files belong to root: sudo make roots"

mkdir -p "$out"
exec {lock}>"$out/lock"
flock --nonblock "$lock" || die "another make roots is at work in $out"
# The roots are outside the clone, whose packages go list would look for in them too.
readonly folder=/var/tmp/eidetic-root
work=$(readlink "$out/work" || true) running=
[[ $work != $folder.* ]] || rm -rf --one-file-system "$work" # of one that was killed
work=$(mktemp -d "$folder.XXXX")
ln -sfn "$work" "$out/work"
chmod 755 "$work" # apt fetches as another user
# shellcheck disable=SC2317 # trap calls it
clean() {
	trap '' INT TERM HUP
	[[ -z $running ]] || kill -KILL "$running" 2>/dev/null || true
	exec >/dev/null 2>&1 # the pipe to tee, which ends then; and wait would say what was killed
	wait
	rm -rf --one-file-system "$work" "$out/work"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

[[ -z $(git status --porcelain 2>/dev/null) ]] || printf 'What is not committed is not in the roots.\n'
commands=("make demo DEMO_FLAGS=--no-serve" "make test")
[[ -z ${RUN:-} ]] || commands=("$RUN")
results=() failed=0
for release in $roots; do
	base "$release" || die "mmdebstrap cannot make a root of $release"
	for user in $users; do
		root=$work/$release
		mkdir "$root"
		tar -C "$root" -xf "$archive"
		furnish "$root" "$release"
		log=$out/$release-$user.log
		: >"$log"
		for command in "${commands[@]}"; do
			printf '== %s, %s: %s (%s)\n' "$release" "$user" "$command" "$log"
			began=$SECONDS status=0
			apart "$0" inside "$root" "$user" "$command" > >(tee -a "$log") 2>&1 || status=$?
			((status == 0)) || failed=1
			results+=("$(printf '%-9s %-5s %6d s  %s  %s' "$release" "$user" $((SECONDS - began)) "$( ((status)) && echo "status $status" || echo good)" "$command")")
		done
		rm -rf --one-file-system "$root"
	done
done
printf '\n'
printf '%s\n' "${results[@]}"
exit $failed
