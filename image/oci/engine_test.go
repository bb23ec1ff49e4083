package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// tryUnpacked: go test ./image/oci -unpacked
var tryUnpacked = flag.Bool("unpacked", false, "do not try podman")

func sha256Of(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// choose loads the image into rootless podman or, where this machine refuses containers,
// unpacks it, and says that this proves less.
func choose(t *testing.T) engine {
	t.Helper()
	dir, err := os.MkdirTemp("", "oci-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // podman's user reads it
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	refusal := "-unpacked was given"
	if !*tryUnpacked {
		testlab.NeedProgram(t, "podman")
		testlab.NeedProgram(t, "newuidmap")
		for _, runtime := range []string{"crun", "runc"} {
			if _, err := exec.LookPath(runtime); err != nil {
				continue
			}
			p, err := newPodman(t, dir, runtime)
			if err == nil {
				t.Log("The image is run by rootless podman with " + runtime)
				return p
			}
			refusal = err.Error()
		}
	}
	u, err := unpack(dir)
	if err != nil {
		t.Fatal(err)
	}
	testlab.Weaker(t, "the image is unpacked and run in namespaces, without podman, which could take rights away: "+refusal)
	return u
}

// podman is a rootless podman. Its user and the user's range of users exist in a mount
// namespace of its own alone, so that nothing of this machine is changed.
type podman struct{ dir, runtime string }

// guest is a user that no Debian package has.
const guest = 61187

// guestDir is where the user finds its folder, in the namespace of mounts alone: temporary folders may lie below one
// that only root may enter, as testrun's do, and podman says "storage.conf: permission denied" then.
const guestDir = "/mnt"

// asGuest prepares the namespaces, as their root, and calls podman as the user. A process that an earlier call left in
// its namespace of processes is gone, so its notes are removed, and its locks, which are in /dev/shm. The shell stays,
// as the first process of the namespace: unshare's child is killed with unshare only for as long as its user does not
// change (PR_SET_PDEATHSIG).
const asGuest = `
mount --bind "$DIR" ` + guestDir + `
mount -t tmpfs -o mode=1777 shm /dev/shm
cd ` + guestDir + `
for f in passwd group subuid subgid; do mount --bind "etc/$f" "/etc/$f"; done
rm -rf run && mkdir -m 700 run && chown $GUEST run
cd home
setpriv --reuid $GUEST --regid $GUEST --clear-groups \
	env -i PATH="$PATH" HOME="$PWD" XDG_RUNTIME_DIR=` + guestDir + `/run STORAGE_DRIVER=overlay podman "$@" || exit
exit 0
`

// newPodman loads the image, unless it is loaded, and tries a container of it.
func newPodman(t *testing.T, dir, runtime string) (*podman, error) {
	t.Helper()
	p := &podman{dir, runtime}
	if err := p.furnish(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "loaded")); err != nil {
		load := p.podman(t.Context(), "load", "--quiet")
		f, err := os.Open(made)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		load.Stdin = f
		if out, err := load.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("podman load: %w: %s", err, out)
		}
		if err := os.WriteFile(filepath.Join(dir, "loaded"), nil, 0o600); err != nil {
			return nil, err
		}
	}
	out, err := p.run(t.Context(), []string{"--rm", "--network", "host"}, []string{"version"}).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("podman with %s: %w: %s", runtime, err, out)
	}
	return p, nil
}

// furnish writes the files that make the user known.
func (p *podman) furnish() error {
	if err := os.MkdirAll(filepath.Join(p.dir, "etc"), 0o755); err != nil {
		return err
	}
	home := filepath.Join(p.dir, "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	if err := os.Chown(home, guest, guest); err != nil {
		return err
	}
	for name, line := range map[string]string{
		"passwd": fmt.Sprintf("eidetic-guest:x:%[1]d:%[1]d::%[2]s/home:/bin/sh\n", guest, guestDir),
		"group":  fmt.Sprintf("eidetic-guest:x:%d:\n", guest),
		"subuid": "eidetic-guest:1879048192:65536\n", // far from the ranges that useradd gives
		"subgid": "eidetic-guest:1879048192:65536\n",
	} {
		have, err := os.ReadFile("/etc/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(p.dir, "etc", name), append(have, line...), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// podman is a call of it, which ends with all that it started.
func (p *podman) podman(ctx context.Context, args ...string) *exec.Cmd {
	inside := append([]string{"--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", "-ec", asGuest, "sh", "--runtime", p.runtime}, args...)
	cmd := exec.CommandContext(ctx, "unshare", inside...)
	cmd.Env = append(os.Environ(), "DIR="+p.dir, fmt.Sprintf("GUEST=%d", guest))
	return cmd
}

func (p *podman) run(ctx context.Context, options, command []string) *exec.Cmd {
	return p.podman(ctx, append(append(append([]string{"run"}, options...), "localhost/eidetic"), command...)...)
}

// unpacked is the image's file system in a folder, run with the image's configuration.
type unpacked struct {
	root   string
	config v1.Config
}

// inRoot gives the program what an engine would: a namespace of mounts with /proc, /sys and
// the devices that every container has, the image's user, and no rights but one to change
// the root.
const inRoot = `
cd "$ROOT"
mount --rbind . .
cd "$ROOT"
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o mode=755 dev dev
for d in null zero full random urandom tty; do : >"dev/$d"; mount --bind "/dev/$d" "dev/$d"; done
ln -s /proc/self/fd dev/fd
mkdir -m 1777 dev/shm
mount -t tmpfs -o mode=1777 shm dev/shm
mount -t tmpfs -o mode=1777 tmp tmp
pivot_root . .
umount -l .
setpriv --reuid "$ID" --regid "$ID" --clear-groups --no-new-privs --inh-caps -all --bounding-set -all,+sys_chroot \
	sh -c 'cd "$DIR" && unset ROOT ID DIR && exec "$@"' sh "$@" || exit
exit 0
`

// unpack makes the file system.
func unpack(dir string) (*unpacked, error) {
	image, err := tarball.ImageFromPath(made, nil)
	if err != nil {
		return nil, err
	}
	description, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	u := &unpacked{filepath.Join(dir, "root"), description.Config}
	if err := os.Mkdir(u.root, 0o755); err != nil {
		return nil, err
	}
	files := mutate.Extract(image)
	defer files.Close()
	tar := exec.Command("tar", "-x", "-p", "--numeric-owner", "-C", u.root)
	tar.Stdin = files
	if out, err := tar.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("tar: %w: %s", err, out)
	}
	return u, nil
}

func (u *unpacked) run(ctx context.Context, _, command []string) *exec.Cmd {
	args := []string{"--mount", "--propagation", "private", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "sh", "-ec", inRoot, "sh"}
	cmd := exec.CommandContext(ctx, "unshare", append(append(args, u.config.Entrypoint...), command...)...)
	id, _, _ := strings.Cut(u.config.User, ":")
	cmd.Env = append(append([]string{}, u.config.Env...), "ROOT="+u.root, "ID="+id, "DIR="+u.config.WorkingDir)
	return cmd
}
