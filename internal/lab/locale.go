package lab

// Locale is what a browser tells pages of where it is. What is unknown is empty.
type Locale struct {
	Zone      string   // its time's offset from UTC, "+02:00"
	Languages []string // as in Accept-Language, the preferred one first: "de-DE", "de"
}
