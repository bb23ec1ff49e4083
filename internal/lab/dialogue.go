package lab

import "fmt"

// Dialogue is something that a page asked a person in a window of the browser's own, above the page.
type Dialogue struct {
	// Kind is "alert", "confirm", "prompt", "print", "beforeunload" (whether to leave the page), "permission", "chooser"
	// (of a passkey, a card or a device) or "program" (whether another program may open an address).
	Kind string `json:"kind"`
	// Text is what the page says there, the function that needs the permission or the choice, such as "getUserMedia", or
	// the address.
	Text string `json:"text,omitempty"`
	// Answered says that the box answered, and that no window was shown.
	Answered bool `json:"answered,omitempty"`
	At       Time `json:"at_ns"` // when the box heard of it
}

// Shown says that the window was shown, and what to do.
func (d Dialogue) Shown() string {
	var advice string
	switch d.Kind {
	case "permission":
		advice = "--on-dialog dismiss, or on_dialog in a plan, refuses it at once; a profile that was given the permission (browser: {profile: …}) grants it"
	case "chooser":
		advice = "--on-dialog dismiss, or on_dialog in a plan, chooses nothing"
	case "program":
		advice = "--on-dialog accept or dismiss, or on_dialog in a plan, leaves the page as it is"
	case "beforeunload":
		advice = "--on-dialog accept, or on_dialog in a plan, leaves"
	default:
		advice = "--on-dialog accept or dismiss, or on_dialog in a plan, answers it at once"
	}
	return d.Asked() + ", in a window over the page, which stands in the film: " + advice
}

// Asked says what the page did.
func (d Dialogue) Asked() string {
	switch d.Kind {
	case "permission":
		return fmt.Sprintf("the page asked for a permission (%s), and the browser asked a person", d.Text)
	case "chooser":
		return fmt.Sprintf("the page had a person choose (%s)", d.Text)
	case "program":
		return fmt.Sprintf("the page asked for another program (%.60q), and the browser asked a person, or started it", d.Text)
	case "beforeunload":
		return "the page asked whether to leave it"
	}
	return fmt.Sprintf("the page opened a dialogue, %s(%s)", d.Kind, quoted(d.Text))
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%.60q", text)
}
