package isolate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// View is what a confined program sees of the file system: the system's programs, libraries
// and settings, read-only; RAM file systems at /tmp and /dev/shm; and what is named here.
type View struct {
	// Home is a folder that the program may write to.
	Home string
	// Readable are files and folders besides the system's, such as a socket or the folder of a
	// program that was installed by hand. Those that do not exist are left out.
	Readable []string
	// TempSize bounds each of the RAM file systems, in bytes.
	TempSize int64
}

// system lists the folders that a confined program sees. Data of people and services, which is
// everywhere else, is not there, and needs no list that could miss some.
var system = [...]string{"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "sys", "nix", "gnu"}

// secret lists what is covered in these folders. File permissions protect it as well, unless
// the user who measures has some of these rights.
var secret = [...]string{"/etc/shadow", "/etc/gshadow", "/etc/appliance", "/etc/ssh", "/etc/ssl/private"}

// outside lists the system's files and folders that are elsewhere, or links to elsewhere.
var outside = [...]string{"/etc/resolv.conf", "/etc/hosts", "/etc/localtime", "/var/cache/fontconfig"}

// devices lists the device files of a confined program.
var devices = [...]string{"null", "zero", "full", "random", "urandom"}

// Confine gives the calling thread, and the programs that it starts from now on, this view, and
// takes from them the right to gain rights by set-user-ID programs. The goroutine must be locked
// to its thread, which must end with it, and must not be the first thread of the process. Confine
// needs CAP_SYS_ADMIN, which the first process of Run has.
func Confine(v View) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("making a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	kept, err := v.open()
	defer kept.close()
	if err != nil {
		return err
	}
	// The new root is made at /tmp, which exists everywhere. Relative paths lead into it.
	if err := ramDisk("/tmp", "mode=755,size=1m"); err != nil {
		return err
	}
	if err := unix.Chdir("/tmp"); err != nil {
		return err
	}
	for _, step := range []func() error{makeDevices, makeProc, v.makeTemp, kept.attach, hideSecrets, v.nameUsers} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root folder: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the machine's file system: %w", err)
	}
	if err := setAttributes(unix.AT_FDCWD, "/", 0, unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up set-user-ID programs: %w", err)
	}
	return nil
}

// tree is a part of the old file system that is to be in the new one.
type tree struct {
	path   string // in the new root, without the first slash
	fd     int    // a detached copy of its mounts; unused for a link
	folder bool
	link   string // the target of a symbolic link
}

type trees []tree

func (all trees) close() {
	for _, t := range all {
		if t.link == "" {
			_ = unix.Close(t.fd) // it holds no data
		}
	}
}

// open opens everything that the view consists of, while it can be reached.
func (v View) open() (all trees, err error) {
	add := func(path string, attributes uint64) error {
		t, err := openTree(path, attributes)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			all = append(all, t)
		}
		return err
	}
	const readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID
	for _, name := range system {
		if err := add("/"+name, readOnly); err != nil {
			return all, err
		}
	}
	for _, name := range devices {
		if err := add("/dev/"+name, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return all, err
		}
	}
	for _, path := range v.readable() {
		if err := add(path, readOnly|unix.MOUNT_ATTR_NODEV); err != nil {
			return all, err
		}
	}
	home, err := openTree(v.Home, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return all, err
	}
	return append(all, home), nil
}

// readable lists what has to be mounted besides the system's folders; a folder comes before
// what is in it.
func (v View) readable() (paths []string) {
	for _, path := range append(slices.Clone(v.Readable), outside[:]...) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue // what does not exist is left out
		}
		for _, p := range []string{path, real} {
			// A folder around the home, such as /tmp, would be in its way.
			if !slices.Contains(paths, p) && !isSystem(p) && !strings.HasPrefix(v.Home+"/", p+"/") {
				paths = append(paths, p)
			}
		}
	}
	slices.Sort(paths)
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return slices.ContainsFunc(paths, func(around string) bool { return around != p && strings.HasPrefix(p, around+"/") })
	})
}

// isSystem tells whether a path is in one of the system's folders.
func isSystem(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains(system[:], first)
}

// openTree makes a detached copy of the mounts at a path. These mounts get the attributes.
func openTree(path string, attributes uint64) (tree, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return tree{}, err
	}
	t := tree{path: strings.TrimPrefix(path, "/"), folder: info.IsDir()}
	if info.Mode().Type() == fs.ModeSymlink {
		t.link, err = os.Readlink(path)
		return t, err
	}
	t.fd, err = unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return tree{}, fmt.Errorf("opening %s for a confined program: %w", path, err)
	}
	if err := setAttributes(t.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attributes); err != nil {
		_ = unix.Close(t.fd)
		return tree{}, err
	}
	return t, nil
}

// setAttributes restricts mounts (mount_setattr(2), since Linux 5.12).
func setAttributes(fd int, path string, flags uint, attributes uint64) error {
	if err := unix.MountSetattr(fd, path, flags, &unix.MountAttr{Attr_set: attributes}); err != nil {
		return fmt.Errorf("restricting a confined program's mounts: %w", err)
	}
	return nil
}

// attach puts everything in its place in the new root.
func (all trees) attach() error {
	for _, t := range all {
		if err := t.attach(); err != nil {
			return fmt.Errorf("showing /%s to a confined program: %w", t.path, err)
		}
	}
	return nil
}

func (t tree) attach() error {
	if err := os.MkdirAll(filepath.Dir(t.path), 0o755); err != nil {
		return err
	}
	if t.link != "" {
		return os.Symlink(t.link, t.path)
	}
	if t.folder {
		if err := os.MkdirAll(t.path, 0o755); err != nil {
			return err
		}
	} else if err := os.WriteFile(t.path, nil, 0o444); err != nil {
		return err
	}
	return unix.MoveMount(t.fd, "", unix.AT_FDCWD, t.path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

func ramDisk(path, options string) error {
	if err := unix.Mount("eidetic", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mounting a RAM file system at %s: %w", path, err)
	}
	return nil
}

// makeDevices makes the folder of device files; the files come with the rest of the view.
func makeDevices() error {
	if err := os.Mkdir("dev", 0o755); err != nil {
		return err
	}
	for name, target := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		if err := os.Symlink("/proc/self/fd"+target, filepath.Join("dev", name)); err != nil {
			return err
		}
	}
	return nil
}

// makeProc mounts a /proc in which a program sees its own processes alone: the others' command
// lines name folders, and may hold a cookie.
func makeProc() error {
	if err := os.Mkdir("proc", 0o755); err != nil {
		return err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("proc", "proc", "proc", flags, "hidepid=2"); err != nil {
		return fmt.Errorf("mounting a /proc of its own for a confined program, which a container whose /proc is masked cannot have: %w", err)
	}
	return nil
}

// makeTemp makes the folders that everybody may write to.
func (v View) makeTemp() error {
	options := fmt.Sprintf("mode=1777,size=%d", v.TempSize)
	for _, dir := range []string{"tmp", "dev/shm"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := ramDisk(dir, options); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("run", 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll("var", 0o755); err != nil {
		return err
	}
	return os.Symlink("../tmp", "var/tmp")
}

// nameUsers covers the machine's list of users by one of those that a confined program can meet: it need not know who
// else is on the machine, and a library may end a program whose user has no name, as anthy's of Debian 13 does.
func (v View) nameUsers() error {
	const list, ours = "etc/passwd", ".passwd"
	if info, err := os.Lstat(list); err != nil || !info.Mode().IsRegular() {
		return nil // this system has it elsewhere
	}
	text := fmt.Sprintf("root:x:0:0::/:/usr/sbin/nologin\nbrowser:x:%d:%[1]d::%s:/usr/sbin/nologin\nnobody:x:%d:%[3]d::/:/usr/sbin/nologin\n",
		insideUser, v.Home, nobody)
	if err := os.WriteFile(ours, []byte(text), 0o444); err != nil {
		return err
	}
	if err := unix.Mount(ours, list, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("covering /%s: %w", list, err)
	}
	return nil
}

// hideSecrets covers what is secret in the system's folders.
func hideSecrets() error {
	const file, folder = ".none", ".empty"
	if err := errors.Join(os.WriteFile(file, nil, 0), os.Mkdir(folder, 0)); err != nil {
		return err
	}
	for _, path := range secret {
		path = strings.TrimPrefix(path, "/")
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Type() == fs.ModeSymlink {
			continue // it does not exist, or is elsewhere and so not in the view
		}
		cover := file
		if info.IsDir() {
			cover = folder
		}
		if err := unix.Mount(cover, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("covering /%s: %w", path, err)
		}
	}
	return nil
}
