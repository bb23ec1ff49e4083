package inject

import "strings"

// allow changes a Content-Security-Policy value (CSP Level 3) so that every policy in it permits
// the script and its posts to the box, and nothing else that was forbidden. A policy in a <meta>
// element comes too late to forbid the script, but applies to the script's posts and to the
// scripts of srcdoc frames (see metaPolicy).
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
	// set replaces directive i. If i is the default-src that name fell back to, set adds name.
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

// inlineAllowed tells whether 'unsafe-inline' applies: only without nonce, hash and
// 'strict-dynamic'.
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
