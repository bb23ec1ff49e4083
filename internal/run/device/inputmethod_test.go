package device

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"eidetic/control"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/isolate"
)

// composes is a page that tells what happens in its one field.
const composes = `<!doctype html><meta charset=utf-8><textarea id=field style="position: fixed; inset: 0"></textarea><script>
	const tell = (kind, text) => navigator.sendBeacon("/tell", JSON.stringify({Kind: kind, Text: text}))
	field.onkeydown = e => tell("key", e.key)
	field.oninput = e => tell("field", field.value)
	for (const kind of ["compositionstart", "compositionupdate", "compositionend"]) field.addEventListener(kind, e => tell(kind, e.data))
	field.onfocus = () => tell("focus", "")
	onmousemove = () => tell("mousemove", "")
</script>`

// TestInputMethods: what is typed goes through an input method, whose composition a page sees, and each browser begins
// with an engine that has learnt nothing.
func TestInputMethods(t *testing.T) {
	ns := cabled(t)
	testlab.NeedProgram(t, "chromium", "certutil")
	testlab.NeedProgram(t, "firefox-esr")
	events := listen(t, composes)
	for _, c := range []struct {
		method, typed, composed string
		commit                  []string // keys
		kind, want              string
	}{
		// The second choice: an engine that had learnt it in the first browser would offer it first in the second one.
		{"anthy", "nihongo", "にほんご", []string{"Space", "Space", "Enter"}, "compositionend", "にほんご"},
		{"byeoru", "gksrmf", "글", []string{"Enter"}, "field", "한글\n"},
		{"pinyin", "nihao", "好", []string{"Space", "Enter"}, "field", "你号"},
	} {
		missing := checkInputMethod(c.method)
		testlab.Need(t, missing == nil, fmt.Sprint("an input method: ", missing))
		for _, name := range []string{lab.Chromium, lab.FirefoxESR} {
			t.Run(c.method+" in "+name, func(t *testing.T) {
				if name != lab.Chromium && c.method != "anthy" {
					testlab.Long(t, "the second browser with another engine")
				}
				_, keys := openPage(t, ns, lab.Browser{Name: name, InputMethod: c.method}, Screen{800, 600}, false)
				var seen []string
				await := func(kind, text string) {
					t.Helper()
					ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
					defer cancel()
					for {
						select {
						case e := <-events:
							seen = append(seen, e.Kind+" "+e.Text)
							if e.Kind == kind && e.Text == text {
								return
							}
						case <-ctx.Done():
							t.Fatalf("the page told of %q; want %s %q", seen, kind, text)
						}
					}
				}
				press := func(chord string) {
					t.Helper()
					if _, err := keys.Key(t.Context(), chord); err != nil {
						t.Fatal(err)
					}
				}
				write := func(text string) {
					t.Helper()
					if _, err := keys.Text(t.Context(), text); err != nil {
						t.Fatal(err)
					}
				}
				awaitInput(t, keys, events)
				if _, err := keys.Click(t.Context(), 400, 300, control.Left); err != nil {
					t.Fatal(err)
				}
				await("focus", "")
				write("a")
				await("field", "a")
				press("Backspace")
				await("field", "")
				if slices.ContainsFunc(seen, func(s string) bool { return strings.HasPrefix(s, "composition") }) {
					t.Fatalf("before the input method was switched on the page saw %q", seen)
				}
				press("Shift+Space")
				write(c.typed)
				await("compositionupdate", c.composed)
				for _, chord := range c.commit {
					press(chord)
				}
				await(c.kind, c.want)
				if c.method == "anthy" && !slices.Contains(seen, "compositionupdate 日本語") {
					t.Errorf("the page saw %q; want 日本語, the first choice", seen)
				}
				if !slices.Contains(seen, "compositionstart ") || !slices.Contains(seen, "key Process") {
					t.Errorf("the page saw %q; want the beginning of a composition, and keys that an input method processes", seen)
				}
			})
		}
	}
}

// TestInputMethodsOfPlans: a plan may name those that there are, and no others.
func TestInputMethodsOfPlans(t *testing.T) {
	want := strings.Join(slices.Sorted(maps.Keys(engines())), ",")
	for _, of := range []reflect.Type{reflect.TypeFor[lab.Browser](), reflect.TypeFor[lab.App]()} {
		field, ok := of.FieldByName("InputMethod")
		if got := field.Tag.Get("enum"); !ok || got != want {
			t.Errorf("%v may have the input methods %q; want %q", of, got, want)
		}
	}
}

// TestInputMethodsAreRefused: with what a person does.
func TestInputMethodsAreRefused(t *testing.T) {
	if err := checkInputMethod("mozc"); err == nil || !strings.Contains(err.Error(), `none "mozc"`) {
		t.Errorf("an unknown input method: %v", err)
	}
	_, err := engineEnvironment("/home", "anthy", isolate.SandboxNone)
	if err == nil || !strings.Contains(err.Error(), "leave out --no-sandbox") {
		t.Errorf("without a sandbox: %v", err)
	}
}
