package ca

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
)

// MobileConfig returns an Apple configuration profile that installs the
// authority (com.apple.security.root, Apple's Configuration Profile
// Reference). The person must still switch trust on under Settings → General →
// About → Certificate Trust Settings.
func (a *Authority) MobileConfig() []byte {
	var name bytes.Buffer
	// The profile is XML, so the name is escaped, although it has no special characters.
	_ = xml.EscapeText(&name, []byte(a.cert.Subject.CommonName)) // a Buffer does not fail
	return fmt.Appendf(nil, mobileConfig,
		base64.StdEncoding.EncodeToString(a.cert.Raw), name.String(), a.uuid("certificate"),
		name.String(), a.uuid("profile"))
}

// uuid derives a UUID (RFC 9562, version 8) from the certificate, so that
// installing the same profile twice replaces it.
func (a *Authority) uuid(part string) string {
	sum := sha256.Sum256(append([]byte(part), a.cert.Raw...))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%X-%X-%X-%X-%X", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

const mobileConfig = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
<key>PayloadContent</key><array><dict>
<key>PayloadCertificateFileName</key><string>ca.crt</string>
<key>PayloadContent</key><data>%s</data>
<key>PayloadDisplayName</key><string>%s</string>
<key>PayloadIdentifier</key><string>test.box.ca</string>
<key>PayloadType</key><string>com.apple.security.root</string>
<key>PayloadUUID</key><string>%s</string>
<key>PayloadVersion</key><integer>1</integer>
</dict></array>
<key>PayloadDescription</key><string>Lets this device accept the test box as every web server. Remove it after the test.</string>
<key>PayloadDisplayName</key><string>%s</string>
<key>PayloadIdentifier</key><string>test.box.profile</string>
<key>PayloadRemovalDisallowed</key><false/>
<key>PayloadType</key><string>Configuration</string>
<key>PayloadUUID</key><string>%s</string>
<key>PayloadVersion</key><integer>1</integer>
</dict></plist>
`
