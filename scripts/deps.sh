#!/usr/bin/env bash
# deps.sh GROUP…: install the Debian packages that a group of make targets
# lacks, and say what and why. Silent, and offline, when nothing is missing.
# A package that this release of Debian does not have is named in one line, and
# stops nothing but the groups build and demo, which are nothing without theirs.
#
# Exit status: 0 everything is there that this release has, 2 wrong usage, 3
# something is missing and cannot be installed.
set -euo pipefail

# One line a need: group | Debian package | the programs on the PATH, or the
# file, that prove it is there | what it is for. The proof is not the package,
# so that a program from elsewhere counts. A file may be a pattern, which finds
# any version. Of several packages the first is taken that this release has.
needs() {
	cat <<-'TABLE'
		build|ca-certificates|/etc/ssl/certs/ca-certificates.crt|Go checks with them whom it downloads modules from
		demo|chromium|chromium|the browser that loads the page
		demo|xvfb|Xvfb|the virtual device's screen
		demo|vpx-tools|vpxenc|evidence videos
		demo|libnss3-tools|certutil|the browser trusts the box's certificate authority
		demo|fonts-liberation|/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf|pages look as their designers meant
		test|firefox-esr|firefox-esr|the second browser that replays are held against
		test|xserver-xorg-core|Xorg|the virtual device's screen, where it is touched
		test|xserver-xorg-video-dummy|/usr/lib/xorg/modules/drivers/dummy_drv.so|that screen is in memory
		test|uim-gtk3-immodule|/usr/lib/*/gtk-3.0/3.0.0/immodules/im-uim.so|input methods, through which a browser is typed into
		test|uim-anthy|/usr/lib/*/uim/plugin/libuim-anthy-utf8.so|the one of them for Japanese
		test|edid-decode|edid-decode|reads the EDIDs that receivers are given, and finds what is wrong with them
		test|adb|adb|the server that speaks with Android devices
		test|mousepad|mousepad|a program that is no browser, whose start is measured
		test|x11-apps|xedit|another one, which it is compared with
		test|x11-xkb-utils|setxkbmap|gives a test's screen the keyboard layout of another country
		test|gcc|gcc|the race detector is linked by it
		test|libc6-dev|/usr/include/stdlib.h|the race detector is linked against it
		test|iputils-ping|ping|tests measure round trips with it
		test|iperf3|iperf3|tests measure the link's rates with it
		test|isc-dhcp-client|dhclient|tests take a lease as a device would
		test|ntpsec-ntpdate|ntpdate|tests ask the box for the time with it
		test|python3|python3|serves the pages of the path in the guide
		test|git|git|a test finds the author of a change in a repository of its own
		test|curl|curl|tests browse with it as a device would
		test|iproute2|ip|tests compare the network before and after with it
		test|nftables|nft|tests look with it whether rules are left behind
		test|openssh-client|ssh-keygen|makes a key that a test signs updates with
		test|perl-base|perl|makes system calls that a browser must not make
		test|openssl|openssl|tests check our certificates with another implementation
		test|dosfstools|mkfs.fat fsck.fat|tests check the file systems that we write
		test|mtools|mcopy|tests read the file systems that we write
		test|systemd|systemd-analyze systemd-sysusers|tests check our unit files
		test|systemd-repart systemd|systemd-repart|tests make the disk's partition table with it
		test|kmod|depmod|tests prune kernel modules with it
		test|binutils|objcopy|tests join EFI programs with it
		test|cpio|cpio|reads the archives that we write
		test|dpkg|dpkg-deb|tests look into the package that we make
		test|systemd-boot-efi|/usr/lib/systemd/boot/efi/linuxx64.efi.stub|tests join EFI programs with it
		test|tigervnc-standalone-server|Xvnc|a VNC server that tests film and drive
		test|x11vnc|x11vnc|another VNC server, of another family
		test|libxml2-utils|xmllint|tests hold XML that we write against a schema
		test|util-linux|unshare|gives a test a disk of its own to fill
		test|util-linux|nsenter|puts a test's program into the device's network
		test|ffmpeg|ffmpeg ffprobe|decodes the videos that become reels
		test|qemu-system-x86|qemu-system-x86_64|the VNC server of a virtual machine
		test|mitmproxy|mitmdump mitmweb|exports recordings that tests import, and is an application that is recorded
		test|postgresql|/usr/lib/postgresql/*/bin/initdb|the other database of a fleet, which tests start and kill
		test|shellcheck|shellcheck|lint reads the shell scripts with it
		test|nginx-light|nginx|serves the applications that are recorded
		test|php-fpm|/usr/sbin/php-fpm*|runs the applications that are recorded
		test|php-cli|php|sets them up
		test|php-sqlite3|/usr/share/doc/php-sqlite3|their database
		test|mediawiki|/usr/share/mediawiki/index.php|an application that is recorded
		test|dokuwiki|/usr/share/dokuwiki/doku.php|an application that is recorded
		test|syncthing|syncthing|an application that is recorded
		test|python3-doc|/usr/share/doc/python3-doc/html/index.html|a site that is recorded
		test|python3-scipy|/usr/lib/python3/dist-packages/scipy/__init__.py|the statistics are compared with its
		test|podman|podman|runs the container image
		test|uidmap|newuidmap|gives podman its users, without root
		test|runc|runc|podman's, which works where control groups are of both versions
		test|nodejs|node|runs other projects' readers of archives
		test|npm|npm|fetches them, and the applications that are recorded
		image|mmdebstrap|mmdebstrap|fetches the packages that the box is made of
		image|binutils|objcopy|joins kernel and file system to one EFI program
		image|kmod|depmod|rebuilds the index of the kernel's modules
		image|systemd-repart systemd|systemd-repart|makes the disk's partition table
		image|systemd-boot-efi|/usr/lib/systemd/boot/efi/systemd-bootx64.efi|the boot loader that the image starts with
		image|qemu-system-x86|qemu-system-x86_64|boots the image to test it
		image|ovmf|/usr/share/OVMF/OVMF_CODE_4M.fd|the virtual machine's UEFI firmware
		bench|postgresql|/usr/lib/postgresql/*/bin/initdb|the other database of a simulated fleet
		bench|iputils-ping|ping|the link's round trips are measured with it
		bench|tcpdump|tcpdump|the link's packets are timed with it
		bench|iperf3|iperf3|the link's rates are measured with it
		bench|curl|curl|the link's connections are measured with it
		bench|nginx-light|nginx|answers for the link's benchmark
		bench|iproute2|tc|the peer that the link's rates are compared with
		bench|ffmpeg|ffmpeg|the peer that reels and metrics are compared with
		bench|python3-numpy|/usr/lib/python3/dist-packages/numpy|browsertime's metrics, a peer, need it
		bench|python3-scipy|/usr/lib/python3/dist-packages/scipy|browsertime's metrics need it
		bench|python3-opencv|/usr/share/doc/python3-opencv|browsertime's metrics need it
		bench|python3-pil|/usr/lib/python3/dist-packages/PIL|browsertime's metrics need it
		bench|chromium-driver|chromedriver|browsertime, a peer, drives Chromium with it
		bench|nodejs|node|runs speedline, a peer of the metrics
		bench|npm|npm|fetches the peers of the metrics
		bench|nghttp2-client|h2load|the client that asks every web server alike
		bench|nginx-light|nginx|a peer in serving recorded bodies
		bench|mitmproxy|mitmdump|the peer that replays what it recorded
		bench|dnsperf|dnsperf|the client that asks every name server alike
		bench|dnsmasq-base|dnsmasq|a peer in answering DNS
		docs|graphviz|dot tred|draws the picture of the packages
		roots|mmdebstrap|mmdebstrap|fetches the packages of a bare root
		roots|debian-archive-keyring|/usr/share/keyrings/debian-archive-keyring.gpg|checks them
	TABLE
}

# go_needed is the oldest Go that can fetch the one that go.mod asks for.
readonly go_needed=1.21

die() {
	printf 'deps: %s\n' "$1" >&2
	exit "${2:-3}"
}

usage() { die "usage: scripts/deps.sh build|demo|test|image|bench|docs|roots …" 2; }

# there PROOF…: are the programs or files there? sbin is not on a user's PATH.
there() {
	local proof
	for proof; do
		case $proof in
		/*) compgen -G "$proof" >/dev/null ;;
		*) PATH=$PATH:/usr/sbin:/sbin command -v "$proof" >/dev/null ;;
		esac || return
	done
}

# at_least WANT HAVE compares version numbers.
at_least() { [[ $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

# go_version prints the version of the installed Go, or nothing.
go_version() {
	# Outside the module, so that no other toolchain is fetched to answer.
	(cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) | sed -n 's/^go\([0-9.]*\).*/\1/p' || true
}

# as_root CMD… runs a command as root. sudo asks for its password at the
# terminal, which is open whatever standard input is.
as_root() {
	if ((EUID == 0)); then
		"$@"
	else
		sudo -- "$@"
	fi
}

# become_root makes sure that as_root will work, and says so when it cannot.
become_root() {
	((EUID == 0)) && return
	command -v sudo >/dev/null ||
		die "installing needs root and there is no sudo; run as root: scripts/deps.sh $*"
	sudo -n true 2>/dev/null && return
	[[ -t 0 && -t 2 ]] ||
		die "sudo wants a password and there is no terminal to ask at; run as root: scripts/deps.sh $*"
	printf 'Installing them needs root; sudo asks for your password.\n' >&2
	sudo -v || die "sudo refused; run as root: scripts/deps.sh $*"
}

apt_get() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@" </dev/null
}

# candidate PACKAGE prints the version that apt would install, without its epoch.
candidate() {
	LC_ALL=C apt-cache policy "$1" | sed -n 's/^ *Candidate: \([0-9]*:\)\{0,1\}//p'
}

# known_packages prints the names of those packages of the table, and dpkg, that this release has. One call for all:
# each reads the lists of the whole release, which takes a second.
known_packages() {
	command -v apt-cache >/dev/null || return 0
	local package rest names=(dpkg)
	while IFS='|' read -r _ package rest; do
		read -ra rest <<<"$package"
		names+=("${rest[@]}")
	done < <(needs)
	LC_ALL=C apt-cache madison "${names[@]}" | while read -r package rest; do printf '%s ' "$package"; done
}

# offered KNOWN PACKAGE… prints the first of the packages that this release has. Where apt does not know its release
# yet, that is the first of all.
offered() {
	local package known=" $1"
	shift
	if [[ $known != *' dpkg '* ]]; then
		printf '%s\n' "$1"
		return
	fi
	for package; do
		if [[ $known == *" $package "* ]]; then
			printf '%s\n' "$package"
			return
		fi
	done
	return 1
}

# release_candidate PACKAGE RELEASE prints the version that a release offers.
release_candidate() {
	LC_ALL=C apt-cache madison "$1" | awk -F' *[|] *' -v release="$2/" 'index($3, release) { sub(/^[0-9]+:/, "", $2); print $2; exit }'
}

# backports adds this Debian's backports, from the mirror that the machine
# already uses. apt takes nothing from backports unless asked for it by name.
backports() {
	local codename mirror list=/etc/apt/sources.list.d/backports.list
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && [[ $ID == debian ]] && printf '%s' "${VERSION_CODENAME:-}") ||
		die "apt offers Go $(candidate golang-go), and ${go_needed} or newer is needed: install Go, then repeat the command"
	# shellcheck disable=SC2016 # the words in $() are apt's
	if ! apt-get indextargets --format '$(RELEASE)' | grep -qx "$codename-backports"; then
		mirror=$(apt-get indextargets --format '$(RELEASE) $(SITE)' | sed -n "s/^$codename //p" | head -n 1)
		[[ -n $mirror ]] || die "apt knows no mirror of Debian $codename: add one to /etc/apt/sources.list, then repeat the command"
		printf 'Adding %s-backports to %s: Debian %s itself has too old a Go.\n' "$codename" "$list" "$codename"
		printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s-backports main\n' "$mirror" "$codename" |
			as_root tee "$list" >/dev/null
		# An unreadable source is only a warning of apt's, so look at the outcome.
		if ! apt_get update || ! at_least "$go_needed" "$(release_candidate golang-go "$codename-backports")"; then
			as_root rm -f "$list"
			die "cannot get Go from $codename-backports at $mirror, and $list is removed again: install Go $go_needed or newer, then repeat the command"
		fi
	fi
	printf '%s-backports\n' "$codename" >"$scratch/release"
}

# collect GROUPS sets packages to what is missing and can be installed, reasons to
# why, and lacks to what this release does not have.
collect() {
	local group package proof why proofs alternatives known=''
	packages=() reasons=() lacks=()
	while IFS='|' read -r group package proof why; do
		[[ $1 == *" $group "* ]] || continue
		read -ra proofs <<<"$proof"
		there "${proofs[@]}" && continue
		read -ra alternatives <<<"$package"
		[[ -n $known ]] || known=$(known_packages)
		if ! package=$(offered "$known" "${alternatives[@]}"); then
			package=${alternatives[0]}
			if [[ $group != build && $group != demo ]]; then
				lacks+=("$package")
				continue
			fi
		fi
		[[ " ${packages[*]} " == *" $package "* ]] && continue # another group needs it too
		packages+=("$package")
		reasons+=("$package: $why")
	done < <(needs)
}

# name_lacks names each package of lacks.
name_lacks() {
	((${#lacks[@]})) || return 0
	printf 'This release of Debian has no package %s: what needs it is left out by name.\n' \
		"$(printf '%s\n' "${lacks[@]}" | sort -u | paste -sd ' ')" >&2
}

hint() { printf 'look at the messages above; the machine must reach its Debian mirror'; }

main() {
	(($#)) || usage
	local group wanted=' build '
	for group; do
		case $group in
		build | demo | image | bench | docs | roots) wanted+="$group " ;;
		test) wanted+="demo test " ;;
		*) usage ;;
		esac
	done

	local packages reasons lacks old_go=''
	collect "$wanted"
	local have
	have=$(go_version)
	if [[ -z $have ]] || ! at_least "$go_needed" "$have"; then
		old_go=yes
		reasons+=("golang-go: compiles the program (${have:-no Go} is installed, $go_needed or newer is needed)")
	fi
	if ((${#reasons[@]} == 0)); then
		name_lacks
		return
	fi

	printf 'Missing on this machine:\n' >&2
	printf '  %s\n' "${reasons[@]}" >&2
	command -v apt-get >/dev/null ||
		die "this is not a Debian, so install what is named above by its own means, then repeat the command"
	become_root "$@"

	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	apt_get update || die "cannot update the package lists: $(hint)"
	collect "$wanted"
	name_lacks
	if [[ -n $old_go ]]; then
		if ! at_least "$go_needed" "$(candidate golang-go)"; then
			backports
			apt_get install --no-install-recommends -t "$(<"$scratch/release")" golang-go ||
				die "cannot install golang-go: $(hint)"
		else
			packages+=(golang-go)
		fi
	fi
	if ((${#packages[@]})); then
		apt_get install --no-install-recommends "${packages[@]}" ||
			die "cannot install ${packages[*]}: $(hint)"
	fi
	have=$(go_version)
	if [[ -z $have ]] || ! at_least "$go_needed" "$have"; then
		die "$(command -v go || echo 'no go on the PATH') is Go ${have:-?} still: remove it or put a newer one before it on the PATH"
	fi
}

main "$@"
