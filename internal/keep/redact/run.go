package redact

import (
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// The parts of a URL that may be secrets: its user, and what follows its path.
var (
	userOf  = regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://)[^/?#\s"<>]*@`)              // constant
	queryOf = regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://[^\s"<>?#]*)([?#][^\s"<>]+)`) // constant
)

// Users removes the users of the URLs in a text, which stay URLs.
func Users(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return userOf.ReplaceAllString(text, "${1}removed@")
}

// Addresses removes users, queries and fragments of the URLs in a text; scheme, host and path stay. Different queries
// stay different: two arms may differ in nothing else.
func (r *Redactor) Addresses(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return queryOf.ReplaceAllStringFunc(Users(text), func(address string) string {
		at := strings.IndexAny(address, "?#")
		r.mu.Lock()
		defer r.mu.Unlock()
		n, ok := r.queries[address[at:]]
		if !ok {
			n = len(r.queries) + 1
			r.queries[address[at:]] = n
		}
		if n == 1 {
			return address[:at+1] + Removed
		}
		return fmt.Sprintf("%s[removed-%d]", address[:at+1], n)
	})
}

// Known removes the secrets that the redactor knows, and users of URLs.
func (r *Redactor) Known(text string) string {
	for _, secret := range r.known {
		text = strings.ReplaceAll(text, secret, Removed)
	}
	return Users(text)
}

// OfRun returns a redactor that knows the secrets of a run's plan: users, queries and fragments of its addresses,
// cookies, storage, and what journeys type.
func OfRun(run *lab.Run) *Redactor {
	var known, pages []string
	plan := run.Plan
	for _, cell := range plan.Cells() {
		for _, arm := range cell.Plan.Arms() {
			known, pages = append(known, secretsOf(arm.Page)...), append(pages, arm.Page)
		}
		known = append(known, typed(cell.Plan.Steps)...)
	}
	known = append(known, secretsOf(run.Page)...)
	known = append(known, Secrets(plan.Users)...)
	return New(slices.DeleteFunc(known, func(secret string) bool {
		return slices.ContainsFunc(append(pages, run.Page), func(page string) bool { // a word that stands in the page's name is none
			u, err := url.Parse(page)
			return err == nil && strings.Contains(u.Host+u.Path, secret)
		})
	})...)
}

// typed are what steps type, and the secrets of the addresses that they open.
func typed(steps []lab.Step) (all []string) {
	for _, s := range steps {
		all = append(all, s.Type)
		all = append(append(all, secretsOf(s.Open)...), secretsOf(s.Launch)...)
		all = append(all, typed(s.Steps)...)
	}
	return all
}

// secretsOf are the parts of an address that may be secrets, as they are written and as they are meant.
func secretsOf(address string) (all []string) {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	if u.User != nil {
		password, _ := u.User.Password()
		all = append(all, u.User.String(), u.User.Username(), password)
	}
	for part := range strings.SplitSeq(u.RawQuery+"&"+u.EscapedFragment(), "&") {
		_, value, _ := strings.Cut(part, "=")
		all = append(all, value)
		if plain, err := url.QueryUnescape(value); err == nil {
			all = append(all, plain)
		}
	}
	return all
}

// Run returns a copy of a run for others to read: its addresses have neither user nor query, and of its plan there is
// no cookie, nothing of a user's storage, and nothing that is typed.
func (r *Redactor) Run(run *lab.Run) *lab.Run {
	return Copy(run, func(text string) string { return r.Known(r.Addresses(text)) })
}

// Copy returns a copy of a value, whose texts are changed; secrets, and what is typed, are removed. Keys of
// maps and fields that are not exported stay.
func Copy[T any](v T, change func(string) string) T {
	c := copier{change, func(lab.Secret) lab.Secret { return lab.NewSecret(Removed) }, map[reflect.Type]bool{}}
	to := reflect.ValueOf(&v).Elem()
	to.Set(c.of(to))
	return v
}

// Secrets lists the texts of all secrets that a value holds in fields that are exported.
func Secrets(v any) (all []string) {
	found := func(s lab.Secret) lab.Secret { all = append(all, s.Reveal()); return s }
	c := copier{func(text string) string { return text }, found, map[reflect.Type]bool{}}
	c.of(reflect.ValueOf(v))
	return all
}

type copier struct {
	change func(string) string
	secret func(lab.Secret) lab.Secret
	texts  map[reflect.Type]bool // whether a value of the type may hold a text
}

var secretType = reflect.TypeFor[lab.Secret]() // constant

// of returns the copy of a value.
func (c *copier) of(v reflect.Value) reflect.Value {
	if !c.mayHold(v.Type()) {
		return v
	}
	to := reflect.New(v.Type()).Elem()
	if s, ok := reflect.TypeAssert[lab.Secret](v); ok {
		if !s.IsZero() {
			to.Set(reflect.ValueOf(c.secret(s)))
		}
		return to
	}
	switch v.Kind() {
	case reflect.String:
		to.SetString(c.change(v.String()))
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v
		}
		inner := c.of(v.Elem())
		if v.Kind() == reflect.Pointer {
			to.Set(reflect.New(v.Type().Elem()))
			to.Elem().Set(inner)
		} else {
			to.Set(inner)
		}
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		to.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			to.Index(i).Set(c.of(v.Index(i)))
		}
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		to.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for at := v.MapRange(); at.Next(); {
			to.SetMapIndex(at.Key(), c.of(at.Value()))
		}
	case reflect.Struct:
		to.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				to.Field(i).Set(c.of(v.Field(i)))
			}
		}
		hide(to.Addr().Interface())
	default:
		return v
	}
	return to
}

// hide removes what was typed, from a plan's steps and from the trial's events, and the files that came with a plan.
func hide(v any) {
	switch v := v.(type) {
	case *lab.Plan:
		v.Files = nil
	case *lab.Step:
		v.Type = hidden(v.Type)
	case *lab.Event:
		if v.IsText() {
			v.Detail = hidden(v.Detail)
		}
	}
}

func hidden(text string) string {
	if text == "" {
		return ""
	}
	return Removed
}

// mayHold says whether a value of a type may hold a text: the series of a run are long, and hold none.
func (c *copier) mayHold(t reflect.Type) bool {
	if known, ok := c.texts[t]; ok {
		return known
	}
	c.texts[t] = true // until it is known, for a type that holds itself
	may := t == secretType
	switch t.Kind() {
	case reflect.String, reflect.Interface:
		may = true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		may = c.mayHold(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && c.mayHold(f.Type) {
				may = true
			}
		}
	}
	c.texts[t] = may
	return may
}
