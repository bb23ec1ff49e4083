package inject

import "strings"

// allow lets the script, and its posts to the box, pass every policy of a
// Content-Security-Policy value (CSP Level 3) without opening anything else.
// One in a <meta> element comes too late for the page's own script, but binds
// that script's posts and the scripts of srcdoc frames (metaPolicy).
func allow(value string, p *Plan) string {
	policies := strings.Split(value, ",")
	for i, policy := range policies {
		policies[i] = allowPolicy(policy, p)
	}
	return strings.Join(policies, ",")
}

func allowPolicy(policy string, p *Plan) string {
	directives := strings.Split(policy, ";")
	find := func(names ...string) int {
		for _, want := range names {
			for i, d := range directives {
				if words := strings.Fields(d); len(words) > 0 && strings.EqualFold(words[0], want) {
					return i // the first one of a name counts
				}
			}
		}
		return -1
	}
	sources := func(i int) []string { return strings.Fields(directives[i])[1:] }
	// set replaces directive i, or adds name when i is the default-src that it fell back to.
	set := func(i int, name string, list []string) {
		old := strings.Fields(directives[i])[0]
		text := " " + name + " " + strings.Join(list, " ")
		if strings.EqualFold(old, "default-src") {
			directives = append(directives, text)
			return
		}
		directives[i] = " " + old + " " + strings.Join(list, " ")
	}
	if p.kind != kindWorker {
		if i := find("script-src-elem", "script-src", "default-src"); i >= 0 && !inlineAllowed(sources(i)) {
			set(i, "script-src", append(without(sources(i), "'none'"), p.script.hash))
		}
	}
	if i := find("connect-src", "default-src"); i >= 0 && p.origin != "" {
		if list := sources(i); !selfAllowed(list) {
			set(i, "connect-src", append(without(list, "'none'"), p.origin+BoxPath))
		}
	}
	return strings.TrimPrefix(strings.Join(directives, ";"), " ")
}

// inlineAllowed: 'unsafe-inline' counts only without nonce, hash and 'strict-dynamic'.
func inlineAllowed(list []string) bool {
	allowed := false
	for _, s := range list {
		s = strings.ToLower(s)
		switch {
		case s == "'unsafe-inline'":
			allowed = true
		case s == "'strict-dynamic'", strings.HasPrefix(s, "'nonce-"), strings.HasPrefix(s, "'sha256-"),
			strings.HasPrefix(s, "'sha384-"), strings.HasPrefix(s, "'sha512-"):
			return false
		}
	}
	return allowed
}

func selfAllowed(list []string) bool {
	for _, s := range list {
		if s == "*" || strings.EqualFold(s, "'self'") {
			return true
		}
	}
	return false
}

func without(list []string, drop string) []string {
	out := make([]string, 0, len(list)+1)
	for _, s := range list {
		if !strings.EqualFold(s, drop) {
			out = append(out, s)
		}
	}
	return out
}
