package box

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// script is a Terminal that types prepared answers.
type script struct {
	answers []string
	said    strings.Builder
}

func (s *script) Say(text string) { s.said.WriteString(text) }

func (s *script) Ask(_ context.Context, question string) (string, error) {
	s.said.WriteString(question)
	if len(s.answers) == 0 {
		return "", errors.New("the script has no more answers")
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	s.said.WriteString(answer + "\n")
	return answer, nil
}

func TestInstaller(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []string
		fails   bool
		want    string // the disk that is written
		says    string
	}{
		{"on the second", []string{"2", "sdb", ""}, false, "sdb", "Eidetic is on sdb"},
		{"none", []string{"", ""}, false, "", "Nothing was changed"},
		{"not a number", []string{"sdb", "0", "3", "2", "sdb", ""}, false, "sdb", `"3" is not a number from 1 to 2`},
		{"another name", []string{"2", "nvme0n1", "", ""}, false, "", `"nvme0n1" is not sdb`},
		{"it fails", []string{"1", "nvme0n1", "", ""}, true, "nvme0n1", "It failed: systemd-repart: exit status: no space"},
		{"nobody", nil, false, "", "Number of the disk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newFakeBox(t)
			for disk, files := range map[string]map[string]string{
				"sda":     {"size": "9999999"}, // the disk that the system runs from
				"sdb":     {"size": "8388608", "removable": "0", "device/model": "Old \x1b[2JDisk", "sdb1/start": "1", "sdb2/start": "9"},
				"nvme0n1": {"size": "1000215216", "ro": "0"},
				"sdc":     {"size": "8388608", "removable": "1"},
				"sdd":     {"size": "2000000"},
				"sde":     {"size": "8388608", "ro": "1"},
				"loop0":   {"size": "8388608"},
			} {
				for name, text := range files {
					b.write(t, filepath.Join("sys/block", disk, name), text+"\n")
				}
			}
			b.write(t, "sys/devices/pci0/block/sda/sda1/size", "573440\n")
			if c.fails {
				b.answers = map[string]answer{"systemd-repart": {"no space", 1}}
			}
			person := &script{answers: c.answers}
			err := Installer{Root: b.root, Run: b.setup().Run, Terminal: person}.Do(t.Context())
			if (err != nil) != (c.answers == nil) {
				t.Error(err)
			}
			said := person.said.String()
			if !strings.Contains(said, c.says) {
				t.Errorf("the installer printed:\n%s\nwant %q in it", said, c.says)
			}
			if !strings.Contains(said, "1  nvme0n1       512.1 GB  empty") ||
				!strings.Contains(said, "2  sdb             4.3 GB  2 partitions Old [2JDisk\n") {
				t.Errorf("the list of disks is wrong:\n%s", said)
			}
			got := strings.Join(b.ran, "\n")
			want := ""
			if c.want != "" {
				want = "systemd-repart --empty=force --dry-run=no --discard=no --no-pager --definitions=/run/appliance-install /dev/" + c.want
			}
			if c.want != "" && !c.fails {
				want += "\nsync "
			}
			if got != want {
				t.Errorf("ran\n%s\nwant\n%s", got, want)
			}
			if c.want != "" {
				layout := b.read(t, installDir+"/10-esp.conf")
				esp := filepath.Join(b.root, "dev/sda1")
				if !strings.Contains(layout, fmt.Sprintf("CopyBlocks=%s\nSizeMinBytes=293601280\nSizeMaxBytes=293601280\n", esp)) {
					t.Errorf("the layout for systemd-repart is wrong:\n%s", layout)
				}
			}
		})
	}
}

func TestInstallerWithoutADisk(t *testing.T) {
	b := newFakeBox(t)
	b.write(t, "sys/block/sda/size", "9999999\n")
	person := &script{answers: []string{""}}
	if err := (Installer{Root: b.root, Run: b.setup().Run, Terminal: person}).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(person.said.String(), "no disk to install on") || len(b.ran) > 0 {
		t.Errorf("without a disk the installer printed %q and ran %v; want a message and no program", person.said.String(), b.ran)
	}
}
