package appsuite

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
)

// startSyncthing starts a node that neither announces itself nor looks for others, with the certificate that it makes
// itself.
func startSyncthing(ctx context.Context, h *host) (string, error) {
	home := filepath.Join(h.dir, "home")
	if err := h.make("syncthing", "generate", "--home", home, "--skip-port-probing", "--no-default-folder"); err != nil {
		return "", err
	}
	file := filepath.Join(home, "config.xml")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for _, name := range []string{
		"globalAnnounceEnabled", "localAnnounceEnabled", "relaysEnabled", "natEnabled", "crashReportingEnabled", "announceLANAddresses",
	} {
		text = regexp.MustCompile(`<`+name+`>[^<]*<`).ReplaceAll(text, []byte("<"+name+">false<"))
	}
	text = regexp.MustCompile(`<listenAddress>[^<]*<`).ReplaceAll(text, []byte("<listenAddress>tcp://127.0.0.1:0<"))
	text = regexp.MustCompile(`<urAccepted>[^<]*<`).ReplaceAll(text, []byte("<urAccepted>-1<"))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", err
	}
	address := fmt.Sprintf("127.0.0.1:%d", h.port)
	// Without a monitor, which would put the server into a group of processes of its own, out of reach of stop.
	env := []string{"STNOUPGRADE=1", "STMONITORED=yes"}
	err = h.run(env, "syncthing", "serve", "--home", home, "--no-browser", "--gui-address", "https://"+address)
	if err != nil {
		return "", err
	}
	own := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // it is asked only whether it is there
	defer own.CloseIdleConnections()
	if err := h.await(ctx, own, "https://"+address+"/"); err != nil {
		return "", err
	}
	return fmt.Sprintf("https://localhost:%d/", h.port), nil
}

// startDokuWiki starts a wiki with users, on PHP's own web server, and returns its login form.
func startDokuWiki(ctx context.Context, h *host) (string, error) {
	conf, data := filepath.Join(h.dir, "conf"), filepath.Join(h.dir, "data")
	// Of Debian's links to files of users and rights, write takes the place: some releases have no such files.
	for from, to := range map[string]string{"/etc/dokuwiki/.": conf, "/var/lib/dokuwiki/data/.": data} {
		if err := os.MkdirAll(to, 0o755); err != nil {
			return "", err
		}
		if err := h.make("cp", "-r", from, to); err != nil {
			return "", err
		}
	}
	for name, text := range map[string]string{
		"conf/local.php":      fmt.Sprintf("<?php\n$conf['title'] = 'Wiki';\n$conf['savedir'] = '%s';\n$conf['useacl'] = 1;\n$conf['updatecheck'] = 0;\n", data),
		"conf/acl.auth.php":   "# <?php exit()?>\n*\t@ALL\t1\n",
		"prepend.php":         "<?php define('DOKU_CONF', '" + conf + "/');\n",
		"conf/users.auth.php": "# <?php exit()?>\nwriter:5ebe2294ecd0e0f08eab7690d2a6ee69:Writer:writer@a.test:user\n", // MD5 of secret
	} {
		if err := h.write(name, text); err != nil {
			return "", err
		}
	}
	err := h.run([]string{"PHP_CLI_SERVER_WORKERS=4"}, "php", "-d", "auto_prepend_file="+filepath.Join(h.dir, "prepend.php"),
		"-S", fmt.Sprintf("127.0.0.1:%d", h.port), "-t", "/usr/share/dokuwiki")
	if err != nil {
		return "", err
	}
	return h.fronted(ctx, "/doku.php?id=start&do=login")
}
