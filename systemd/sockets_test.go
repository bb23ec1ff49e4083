package systemd

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childSockets takes its sockets by name and prints what it got. It needs its
// own process id in LISTEN_PID, which the parent cannot know beforehand.
func childSockets() int {
	_ = os.Setenv("LISTEN_PID", fmt.Sprint(os.Getpid()))
	s := TakeSockets()
	if os.Getenv("LISTEN_FDS") != "" {
		return 4
	}
	panel, err := s.Listener("panel")
	fmt.Println("panel", address(panel), err)
	streams, err := s.Listener("dns")
	fmt.Println("dns streams", streams != nil, err)
	none, err := s.Listener("none")
	fmt.Println("none", none != nil, err)
	wrong, err := s.Listener("packets")
	fmt.Println("packets", wrong != nil, err)
	fmt.Println("close", s.Close())
	fmt.Println("close again", s.Close())
	if panel == nil {
		return 5
	}
	conn, err := panel.Accept()
	if err != nil {
		return 5
	}
	_, _ = io.WriteString(conn, "hello from the child\n")
	_ = conn.Close()
	return 0
}

func address(l net.Listener) string {
	if l == nil {
		return "absent"
	}
	return l.Addr().String()
}

func TestSocketsByNameInAChild(t *testing.T) {
	listen := func() (*net.TCPListener, *os.File) {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		return l, f
	}
	panel, panelFile := listen()
	defer panel.Close()
	dns, dnsFile := listen()
	defer dns.Close()
	web, webFile := listen()
	defer web.Close()
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	udpFile, err := udp.File()
	if err != nil {
		t.Fatal(err)
	}

	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childMode+"=sockets", "LISTEN_FDS=5", "LISTEN_FDNAMES=dns:panel:dns:packets:web")
	child.ExtraFiles = []*os.File{udpFile, panelFile, dnsFile, udpFile, webFile}
	var out strings.Builder
	child.Stdout = &out
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", panel.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	greeting, err := io.ReadAll(conn)
	if err != nil || string(greeting) != "hello from the child\n" {
		t.Errorf("greeting %q, %v", greeting, err)
	}
	if err := child.Wait(); err != nil {
		t.Errorf("child: %v", err)
	}
	want := "panel " + panel.Addr().String() + ` <nil>
dns streams true <nil>
none false <nil>
packets false socket "packets" from systemd: none of those passed is a stream socket of a known family
close sockets passed by systemd that nothing serves: dns, packets, web; check FileDescriptorName= in the socket unit
close again <nil>
`
	if out.String() != want {
		t.Errorf("child said:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestNoSocketsOutsideSystemd(t *testing.T) {
	s := TakeSockets()
	l, err := s.Listener("panel")
	if l != nil || err != nil || s.Close() != nil {
		t.Errorf("got %v, %v", l, err)
	}
}
