package archive

import (
	"regexp"
	"strings"

	"eidetic/internal/lab"
)

// Locale is that of the browser whose requests were recorded, as far as the recording tells: the languages
// from Accept-Language of its first document, and the zone from an import's times.
func (a *Archive) Locale() lab.Locale {
	l := lab.Locale{Zone: a.options.Zone}
	for _, e := range a.exchanges {
		if l.Languages = languages(e.Request.Get("Accept-Language")); isDocument(e) && len(l.Languages) > 0 {
			break
		}
	}
	return l
}

// languageTag is a language tag (RFC 5646) by its form.
var languageTag = regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,7}$`) // constant

// languages lists those of an Accept-Language field (RFC 9110, 12.5.4). Browsers sort them by preference.
func languages(field string) (list []string) {
	const most = 20
	for _, part := range strings.Split(field, ",") {
		tag, _, _ := strings.Cut(part, ";")
		if tag = strings.TrimSpace(tag); languageTag.MatchString(tag) && len(list) < most {
			list = append(list, tag)
		}
	}
	return list
}

// offset is the end of a time with its offset from UTC (RFC 3339, and as some exporters write it).
var offset = regexp.MustCompile(`T.*([+-](?:0\d|1[0-4])):?([0-5]\d)$`) // constant

// zoneOf returns the offset of a HAR's time from UTC, "+02:00"; "" if it has none: a time in UTC
// does not tell where its browser was.
func zoneOf(started string) string {
	if m := offset.FindStringSubmatch(started); m != nil {
		return m[1] + ":" + m[2]
	}
	return ""
}

// isZone tells what zoneOf returns.
func isZone(text string) bool { return text != "" && zoneOf("T"+text) == text }
