package netlab

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"rsc.io/qr"

	"eidetic/netlab/ca"
)

// BoxHost is the box's own name in the device's network.
const BoxHost = "box.test"

// TrustedPath is the path of a picture that only a device which trusts the box's certificate gets.
const TrustedPath = "/trusted"

// onePixel is a GIF of one transparent pixel.
const onePixel = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"

// NewBox returns the pages of http://box.test/: / (how to install the
// certificate, with a QR code of the page itself for the next device, and whether this
// device trusts it), /ca.crt (DER), /ca.pem, /ca.mobileconfig, /trusted (a picture, by https
// alone: a device that gets it trusts the certificate), /sync?next=URL (pure
// green #00ff00 without a cursor; Enter goes on to the URL) and /red (#ff0000).
func NewBox(authority *ca.Authority) http.Handler {
	mux := http.NewServeMux()
	file := func(path, contentType, name string, data func() []byte) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			if name != "" {
				w.Header().Set("Content-Disposition", "attachment; filename="+name)
			}
			_, _ = w.Write(data()) // the device went away
		})
	}
	file("/ca.crt", "application/x-x509-ca-cert", "eidetic-ca.crt", authority.DER)
	file("/ca.pem", "application/x-pem-file", "eidetic-ca.pem", authority.PEM)
	// Without a name: Safari installs a profile only when it is shown inline.
	file("/ca.mobileconfig", "application/x-apple-aspen-config", "", authority.MobileConfig)
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		page(w, certificatePage, struct {
			Name, Fingerprint, End string
			Code                   template.URL
		}{
			authority.Certificate().Subject.CommonName, spaced(authority.Fingerprint()),
			authority.Certificate().NotAfter.Format(time.DateOnly), pictureOf("http://" + BoxHost + "/"),
		})
	})
	mux.HandleFunc("GET "+TrustedPath, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Scheme != "https" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "image/gif")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write([]byte(onePixel)) // the device went away
	})
	mux.HandleFunc("GET /red", func(w http.ResponseWriter, r *http.Request) {
		page(w, colourPage, colour{Title: "red", Colour: "#ff0000"})
	})
	mux.HandleFunc("GET /sync", func(w http.ResponseWriter, r *http.Request) {
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			http.Error(w, "the query cannot be read; escape next as a query's value: "+err.Error(), http.StatusBadRequest)
			return
		}
		next := query.Get("next")
		if sealed, ok := strings.CutPrefix(r.URL.RawQuery, sealedQuery); ok {
			if next, ok = unseal(sealed); !ok {
				http.Error(w, "this address is of an earlier start of the box", http.StatusBadRequest)
				return
			}
		}
		if next == "" {
			page(w, colourPage, colour{Title: "sync", Colour: "#00ff00"})
			return
		}
		u, err := url.Parse(next)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			http.Error(w, "next must be an absolute http:// or https:// URL", http.StatusBadRequest)
			return
		}
		script, err := json.Marshal(u.String()) // escapes <, > and & too, so it may stand in a script
		if err != nil {
			http.Error(w, "next cannot be written as a script", http.StatusBadRequest)
			return
		}
		page(w, colourPage, colour{Title: "sync", Colour: "#00ff00", Next: template.JS(script)})
	})
	return mux
}

type colour struct {
	Title  string
	Colour template.CSS
	Next   template.JS // a JSON string, or empty
}

func page(w http.ResponseWriter, t func() *template.Template, data any) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src 'self' data: https://"+BoxHost)
	h.Set("X-Content-Type-Options", "nosniff")
	// The page that the green one leads to is asked for as if its address had been typed: servers refuse a Referer of
	// another origin as a forged request.
	h.Set("Referrer-Policy", "no-referrer")
	_ = t().Execute(w, data) // the templates are constant; what fails is the device's connection
}

func colourPage() *template.Template {
	return template.Must(template.New("colour").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width,initial-scale=1">
<style>html,body{margin:0;height:100%;overflow:hidden;background:{{.Colour}};cursor:none}</style></head><body>
{{with .Next}}<script>addEventListener("keydown",e=>{if(e.key==="Enter"){e.preventDefault();location.replace({{.}})}})
// How fast the browser is just now: the layout of a fixed tree that nobody sees, long before the key. The page under test
// has no part in this document and its clock.
addEventListener("load",()=>requestAnimationFrame(()=>setTimeout(()=>{
const tree=document.createElement("div");tree.style.cssText="position:absolute;visibility:hidden;contain:strict;width:600px;height:400px";
let rows="";for(let i=0;i<30;i++)rows+="<div style='display:flex'><p>row "+i+" of a fixed tree</p><ul><li>one<li>two</ul><span>its words wrap</span></div>";
tree.innerHTML=rows;document.body.append(tree);
const begin=performance.now();for(let i=0;i<6;i++){tree.style.width=600-9*i+"px";tree.style.font=(12+i%3)+"px sans-serif";tree.offsetHeight;tree.lastChild.offsetTop}
const took=performance.now()-begin;tree.remove();new Image().src="sync?meter="+took.toFixed(2)},20)))</script>
{{end}}</body></html>
`))
}

// pictureOf is a QR code (ISO/IEC 18004) as a data URL, or "" for a text that is
// too long for one.
func pictureOf(text string) template.URL {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return ""
	}
	return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(code.PNG()))
}

// spaced writes a fingerprint as settings show it.
func spaced(hex string) string {
	out := ""
	for i := 0; i+2 <= len(hex); i += 2 {
		if i > 0 {
			out += ":"
		}
		out += fmt.Sprintf("%.2s", hex[i:])
	}
	return out
}

func certificatePage() *template.Template {
	return template.Must(template.New("certificate").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Eidetic: set up this device</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width,initial-scale=1">
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
a.button{display:inline-block;padding:.6rem 1rem;margin:.2rem .4rem .2rem 0;border-radius:.4rem;
background:#0b5cad;color:#fff;text-decoration:none}
#trust{padding:.6rem 1rem;border-radius:.4rem;background:#fff3cd}
#trust.yes{background:#d1f0dc}
code{overflow-wrap:anywhere;background:#f2f2f2;padding:.1rem .2rem}
</style></head><body>
<h1>Set up this device</h1>
<p>This network answers for every web server, so that pages can be recorded and replayed. The device must trust the box's
certificate first. Use a device that is for tests, and remove the certificate when they are over.</p>
<p id="trust" role="status">Whether this device trusts the certificate is being tried …</p>
<p><a class="button" href="/ca.crt">Certificate (Android, Windows, Linux)</a>
<a class="button" href="/ca.mobileconfig">Profile (iPhone, iPad, Mac)</a></p>
<ul>
<li><b>Android:</b> download, then Settings → Security → Encryption and credentials → Install a certificate → CA certificate.
Chrome honours it; other apps mostly do not.</li>
<li><b>iPhone, iPad:</b> allow the profile, install it in Settings → General → VPN and Device Management, and then switch it on in
Settings → General → About → Certificate Trust Settings.</li>
<li><b>Windows:</b> open the file, choose Install Certificate, Local Machine, and the store Trusted Root Certification
Authorities.</li>
<li><b>Mac:</b> open the file, add it to the keychain System, and set it there to Always Trust.</li>
<li><b>Firefox:</b> Settings → Privacy and Security → Certificates → View Certificates → Authorities → Import. On Android:
Settings → About Firefox, tap the logo five times, then Secret settings → Use third party CA certificates.</li>
<li><b>Linux:</b> <a href="/ca.pem">PEM file</a>, for
<code>certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n eidetic -i eidetic-ca.pem</code></li>
</ul>
{{with .Code}}<p><img src="{{.}}" width="116" height="116" alt="QR code of http://box.test/"><br>
The address of this page, for another device in this network.</p>
{{end}}<p>Its name is <b>{{.Name}}</b>; it ends on {{.End}}, and its SHA-256 fingerprint is<br><code>{{.Fingerprint}}</code></p>
<script>
const trust = document.getElementById("trust");
let tries = 0;
(function look() {
  const picture = new Image();
  picture.onload = () => {
    trust.className = "yes";
    trust.textContent = "This device trusts the certificate. It is ready.";
  };
  picture.onerror = () => {
    trust.textContent = "This device does not trust the certificate yet. This line changes when it does; some browsers must be restarted first.";
    setTimeout(look, 3000);
  };
  picture.src = "https://box.test/trusted?" + ++tries;
})();
</script>
</body></html>
`))
}
