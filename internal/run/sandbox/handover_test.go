package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/isolate"
	"eidetic/netlab/proxy"
)

// reportTo names the file into which this test's binary writes, as an inner half, what it was started with.
const reportTo = "EIDETIC_SANDBOX_REPORT"

// crash is the file of an inner half that writes none, and ends as what hangs is ended.
const crash = "crash"

func TestMain(m *testing.M) {
	file := os.Getenv(reportTo)
	if file == "" {
		os.Exit(m.Run())
	}
	if file == crash { // as the watchdog ends what hangs
		var task Task
		_ = takeOver(&task)
		_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
		select {}
	}
	if err := report(file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// started is what any process of the same user can read of the inner half, what others can, and the task.
type started struct {
	Arguments, Environment string
	Task                   Task
	Processes, Files, Core uint64   // the limits of both
	Memory                 int      // how likely the kernel ends it
	Open                   []string // descriptors that a program which the inner half starts would get
}

func report(file string) error {
	var s started
	arguments, err := os.ReadFile("/proc/self/cmdline")
	if err != nil {
		return err
	}
	environment, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return err
	}
	s.Arguments, s.Environment = string(arguments), string(environment)
	if err := takeOver(&s.Task); err != nil {
		return err
	}
	for resource, most := range map[int]*uint64{unix.RLIMIT_NPROC: &s.Processes, unix.RLIMIT_NOFILE: &s.Files, unix.RLIMIT_CORE: &s.Core} {
		var is unix.Rlimit
		if err := unix.Getrlimit(resource, &is); err != nil {
			return err
		}
		*most = is.Max
	}
	memory, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return err
	}
	if s.Memory, err = strconv.Atoi(strings.TrimSpace(string(memory))); err != nil {
		return err
	}
	for fd := 3; fd < 64; fd++ {
		info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
		if err != nil {
			continue
		}
		var flags int
		for line := range strings.Lines(string(info)) {
			fmt.Sscanf(line, "flags: %o", &flags)
		}
		if flags&syscall.O_CLOEXEC == 0 {
			s.Open = append(s.Open, fmt.Sprint(fd))
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// What a plan has of secrets, and a plan of any size, reaches the inner half by a descriptor: no argument and no
// variable of its environment has them, and no program that it starts inherits one.
func TestTaskIsNoArgument(t *testing.T) {
	err := isolate.Available(t.Context())
	testlab.Need(t, err == nil, fmt.Sprintf("namespaces: %v", err))
	const secret = "planted-session-id"
	plan := lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Archive: "/tmp/a.wacz"}, Name: strings.Repeat("long ", 60_000)}
	plan.Users = []lab.PlanUser{{Name: "u", Cookies: []lab.PlanCookie{{Name: "sid", Value: lab.NewSecret(secret)}}}}
	task := Task{ID: "x", Plan: plan, Out: t.TempDir()}
	task.Reach.Send = proxy.Session{"https://a.test": {{Name: "Authorization", Value: lab.NewSecret(secret)}}}
	file := filepath.Join(t.TempDir(), "report")
	t.Setenv(reportTo, file)
	if err := task.Run(t.Context(), Commands{Inside: []string{"inside"}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got started
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got.Arguments, secret) || strings.Contains(got.Environment, secret) {
		t.Errorf("the arguments of the inner half are %.300q; want none with the plan's secrets", got.Arguments)
	}
	if diff := cmp.Diff(plan, got.Task.Plan); diff != "" {
		t.Errorf("the inner half got another plan (-want +got):\n%.2000s", diff)
	}
	if got.Processes > 8192 || got.Files > 65536 || got.Core != 0 || got.Memory < 500 {
		t.Errorf("the run may have %d processes, %d files each, %d bytes of a core, and ends at %d; want at most 8192, 65536, 0, and first",
			got.Processes, got.Files, got.Core, got.Memory)
	}
	if len(got.Open) > 0 {
		t.Errorf("programs of the inner half inherit the descriptors %v; want none", got.Open)
	}
}

// What an inner half with secrets prints when it is aborted has the stacks of its goroutines, and no secret.
func TestCrashSaysNoSecret(t *testing.T) {
	err := isolate.Available(t.Context())
	testlab.Need(t, err == nil, fmt.Sprintf("namespaces: %v", err))
	const secret = "planted-session-id"
	plan := lab.Plan{Arm: lab.Arm{Page: "https://a.test/"}}
	plan.Users = []lab.PlanUser{{Name: "u", Cookies: []lab.PlanCookie{{Name: "sid", Value: lab.NewSecret(secret)}}, Storage: map[string]lab.Secret{"k": lab.NewSecret(secret)}}}
	task := Task{ID: "x", Plan: plan, Out: t.TempDir()}
	task.Reach.Send = proxy.Session{"https://a.test": {{Name: "Authorization", Value: lab.NewSecret(secret)}}}
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	t.Setenv(reportTo, crash)
	old := os.Stderr
	os.Stderr = said
	err = task.Run(t.Context(), Commands{Inside: []string{"inside"}})
	os.Stderr = old
	text, readErr := os.ReadFile(said.Name())
	if err == nil || readErr != nil || !strings.Contains(string(text), "goroutine ") || strings.Contains(string(text)+err.Error(), secret) {
		t.Errorf("it ended with %v and said %.1000q, %v; want stacks without the secret", err, text, readErr)
	}
	if said := fmt.Sprintf("%+v %#v", task, task); strings.Contains(said, secret) {
		t.Errorf("printing the task says the secret: %.500s", said)
	}
}
