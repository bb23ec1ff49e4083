package conformance

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/nstest"
)

// webapps are applications as Debian ships them, on one nginx with PHP: MediaWiki with its database in
// SQLite, DokuWiki with its files, and a static site, Python's documentation.
type webapps struct {
	stop func()
}

const (
	mediawiki = "/usr/share/mediawiki"
	dokuwiki  = "/usr/share/dokuwiki"
	pythonDoc = "/usr/share/doc/python3-doc/html"
)

// The addresses of the applications, by host.
var webappAddrs = map[string]string{"wiki.test": originAddress, "doku.test": "203.0.113.11", "docs.test": "203.0.113.12"}

// startWebapps sets fresh instances up and serves them in a namespace, with
// certificates of authority.
func startWebapps(t *testing.T, in *nstest.Namespace, authority *ca.Authority) *webapps {
	nginx := testlab.NeedProgram(t, "nginx")
	fpm := testlab.NeedProgram(t, "php-fpm*")
	for _, file := range []string{mediawiki + "/index.php", dokuwiki + "/doku.php", pythonDoc + "/index.html"} {
		_, err := os.Stat(file)
		testlab.Need(t, err == nil, file+" (mediawiki, dokuwiki, python3-doc)")
	}
	testlab.NeedRoot(t)
	dir := t.TempDir()
	installMediaWiki(t, dir)
	installDokuWiki(t, dir)
	for host, addr := range webappAddrs {
		writeKey(t, authority, filepath.Join(dir, host+".pem"), host)
		if addr != originAddress {
			in.Address(t, "eth0", addr+"/24")
		}
	}
	w := &webapps{}
	socket := filepath.Join(dir, "php.sock")
	check(t, os.WriteFile(filepath.Join(dir, "fpm.conf"), []byte(fmt.Sprintf(`
[global]
error_log = %[1]s/fpm.log
daemonize = no
[www]
user = root
group = root
listen = %[2]s
pm = static
pm.max_children = 4
`, dir, socket)), 0o644))
	check(
		t,
		os.WriteFile(
			filepath.Join(dir, "nginx.conf"),
			[]byte(
				fmt.Sprintf(
					nginxConf,
					dir,
					socket,
					mediawiki,
					dokuwiki,
					pythonDoc,
					webappAddrs["wiki.test"],
					webappAddrs["doku.test"],
					webappAddrs["docs.test"],
				),
			),
			0o644,
		),
	)
	var running []*exec.Cmd
	for _, argv := range [][]string{
		{fpm, "--nodaemonize", "--allow-to-run-as-root", "--fpm-config", filepath.Join(dir, "fpm.conf")},
		{nginx, "-e", "stderr", "-c", filepath.Join(dir, "nginx.conf")},
	} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stderr = t.Output()
		check(t, start(t, in, cmd))
		running = append(running, cmd)
	}
	w.stop = func() {
		for _, cmd := range running {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its workers too
			_ = cmd.Wait()
		}
		running = nil
	}
	t.Cleanup(w.stop)
	for _, addr := range webappAddrs {
		awaitListener(t, in, "tcp", addr+":443")
	}
	awaitListener(t, in, "unix", socket)
	return w
}

const nginxConf = `
daemon off;
user root;
pid %[1]s/nginx.pid;
error_log stderr crit;
worker_processes 1;
events { worker_connections 512; }
http {
	include /etc/nginx/mime.types;
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	gzip on;
	gzip_types text/css application/javascript;
	ssl_certificate %[1]s/$ssl_server_name.pem;
	ssl_certificate_key %[1]s/$ssl_server_name.pem;
	index index.php doku.php index.html;
	server {
		listen %[6]s:443 ssl http2;
		server_name wiki.test;
		root %[3]s;
		location = /favicon.ico { return 204; }
		location ~ \.php(/|$) {
			include /etc/nginx/fastcgi_params;
			fastcgi_split_path_info ^(.+?\.php)(/.*)?$;
			fastcgi_param SCRIPT_FILENAME %[3]s$fastcgi_script_name;
			fastcgi_param PATH_INFO $fastcgi_path_info;
			fastcgi_param MW_CONFIG_FILE %[1]s/LocalSettings.php;
			fastcgi_pass unix:%[2]s;
		}
	}
	server {
		listen %[7]s:443 ssl http2;
		server_name doku.test;
		root %[4]s;
		location ~ \.php$ {
			include /etc/nginx/fastcgi_params;
			fastcgi_param SCRIPT_FILENAME %[4]s$fastcgi_script_name;
			fastcgi_param PHP_VALUE "auto_prepend_file=%[1]s/doku.php";
			fastcgi_pass unix:%[2]s;
		}
	}
	server {
		listen %[8]s:443 ssl http2;
		server_name docs.test;
		root %[5]s;
	}
}
`

// installMediaWiki makes a wiki with a database of its own and a page that
// uses what wikis use: headings, a table of contents, a table, links, a list.
func installMediaWiki(t *testing.T, dir string) {
	php := testlab.NeedProgram(t, "php")
	run := func(stdin string, args ...string) {
		cmd := exec.Command(php, append([]string{"-d", "error_reporting=0"}, args...)...)
		cmd.Env = append(os.Environ(), "MW_CONFIG_FILE="+filepath.Join(dir, "LocalSettings.php"))
		cmd.Stdin = strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("php %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	// The installer refuses settings files that do not exist yet.
	cmd := exec.Command(php, mediawiki+"/maintenance/install.php", "--dbtype=sqlite", "--dbpath="+dir, "--confpath="+dir,
		"--server=https://wiki.test", "--scriptpath=", "--with-extensions", "--pass=correct horse battery", "Recorded Wiki", "Admin")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("install MediaWiki: %v\n%s", err, out)
	}
	settings, err := os.OpenFile(filepath.Join(dir, "LocalSettings.php"), os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	_, err = settings.WriteString("\n$wgJobRunRate = 0;\n")
	check(t, err)
	check(t, settings.Close())
	var page strings.Builder
	for i := range 8 {
		fmt.Fprintf(
			&page,
			"== Section %d ==\nSome '''bold''' and ''italic'' text with a [[Missing page]] and [https://www.example.test/ a link].\n* one\n* two\n** deeper\n",
			i,
		)
	}
	page.WriteString("{| class=\"wikitable sortable\"\n! Name !! Value\n|-\n| a || 1\n|-\n| b || 2\n|}\n")
	run(page.String(), mediawiki+"/maintenance/edit.php", "--user", "Admin", "Main_Page")
}

// installDokuWiki makes a wiki with a configuration and data of its own.
func installDokuWiki(t *testing.T, dir string) {
	conf, data := filepath.Join(dir, "doku-conf"), filepath.Join(dir, "doku-data")
	for _, copied := range [][2]string{{"/etc/dokuwiki/.", conf}, {"/var/lib/dokuwiki/data/.", data}} {
		check(t, os.MkdirAll(copied[1], 0o755))
		if out, err := exec.Command("cp", "-r", copied[0], copied[1]).CombinedOutput(); err != nil {
			t.Fatalf("copy %s: %v\n%s", copied[0], err, out)
		}
	}
	local := fmt.Sprintf(
		"<?php\n$conf['title'] = 'Recorded DokuWiki';\n$conf['savedir'] = '%s';\n$conf['useacl'] = 0;\n$conf['updatecheck'] = 0;\n",
		data,
	)
	check(t, os.WriteFile(filepath.Join(conf, "local.php"), []byte(local), 0o644))
	check(t, os.WriteFile(filepath.Join(dir, "doku.php"), []byte("<?php define('DOKU_CONF', '"+conf+"/');\n"), 0o644))
	var page strings.Builder
	page.WriteString("====== Start ======\nA page with ''code'', **bold** text and a [[missing]] link.\n")
	for i := range 6 {
		fmt.Fprintf(
			&page,
			"===== Section %d =====\n  * one\n  * two\n\n^ Name ^ Value ^\n| a | %d |\n\n<code php>\n<?php echo %d;\n</code>\n",
			i,
			i,
			i,
		)
	}
	check(t, os.MkdirAll(filepath.Join(data, "pages"), 0o755))
	check(t, os.WriteFile(filepath.Join(data, "pages", "start.txt"), []byte(page.String()), 0o644))
}

// writeKey writes a leaf with its key, for nginx.
func writeKey(t *testing.T, authority *ca.Authority, file, host string) {
	leaf, err := authority.Leaf(host)
	check(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	check(t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	for _, der := range leaf.Certificate {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	check(t, os.WriteFile(file, text, 0o600))
}
