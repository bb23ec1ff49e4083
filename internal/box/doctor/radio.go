package doctor

import (
	"fmt"
	"strings"

	"eidetic/netlab/wifi/radio"
)

// otherRadio is what to do without a radio that can be an access point. The named drivers register that mode in the
// kernel's sources.
const otherRadio = "plug in a radio that can be an access point: the kernel's drivers ath9k (PCIe) and ath9k_htc (USB with AR9271, 2.4 GHz) can; " +
	"to try without one: modprobe mac80211_hwsim"

// checkRadios says which of the radios, under the rules of the present country, can be a device's Wi-Fi, and how. ask
// is [radio.All].
func checkRadios(ask func() ([]radio.Radio, string, error)) Finding {
	f := Finding{Name: "radio", For: "devices by Wi-Fi"}
	all, country, err := ask()
	if err != nil || len(all) == 0 {
		found := "no Wi-Fi radio"
		if err != nil {
			found += ": " + err.Error()
		}
		return f.bad(found, otherRadio)
	}
	var told []string
	capable, open := 0, 0
	for _, r := range all {
		text, can, channels := tellRadio(r)
		told = append(told, text)
		if can {
			capable++
		}
		open += channels
	}
	where := "country " + country
	if country == "00" || country == "" {
		where = "no country, so what is allowed everywhere"
	}
	found := strings.Join(told, "; ") + " (" + where + ")"
	switch {
	case capable == 0:
		return f.bad(found, otherRadio)
	case open == 0:
		return f.bad(found, "name the country of the device in the configuration (wifi: {country: DE}): its rules may open channels")
	}
	return f.good(found)
}

// tellRadio describes a radio; can says whether it can be an access point, and open on how many channels now.
func tellRadio(r radio.Radio) (text string, can bool, open int) {
	text = r.Name
	if len(r.Interfaces) > 0 {
		text = strings.Join(r.Interfaces, ", ")
	}
	if !r.AccessPoint {
		return text + ": no access point mode, so it cannot be a device's Wi-Fi", false, 0
	}
	text += ": access point"
	low, high := r.Open(radio.Low2, radio.High2), r.Open(radio.Low5, radio.High5)
	switch {
	case len(low) == 0 && len(high) == 0:
		text += ", but on no channel"
	default:
		text += " on " + strings.Join(nonEmpty(spans(low), spans(high)), ", ")
	}
	switch {
	case !r.Has5GHz():
		text += ", no 5 GHz"
	case len(high) == 0:
		text += ", none of 5 GHz by the country's rules"
	}
	if r.MostStations > 0 {
		text += fmt.Sprintf(", at most %d devices", r.MostStations)
	}
	return text, true, len(low) + len(high)
}

func nonEmpty(texts ...string) (list []string) {
	for _, t := range texts {
		if t != "" {
			list = append(list, t)
		}
	}
	return list
}

// spans lists the numbers of channels of one band: "1-13" or "36, 40, 44, 48".
func spans(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		to := i
		for to+1 < len(numbers) && numbers[to+1] == numbers[to]+1 {
			to++
		}
		if to > i+1 {
			parts = append(parts, fmt.Sprintf("%d-%d", numbers[i], numbers[to]))
		} else {
			for _, n := range numbers[i : to+1] {
				parts = append(parts, fmt.Sprint(n))
			}
		}
		i = to + 1
	}
	return strings.Join(parts, ", ")
}
