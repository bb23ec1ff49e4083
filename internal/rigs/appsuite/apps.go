package appsuite

import (
	"context"
	"fmt"
	"path/filepath"
)

// App is an application of the suite.
type App struct {
	Name string
	From string // the package and who distributes it
	Has  string // what makes it worth recording
	// Quick tells that it is tried by make test, which installs nothing of npm's; make test-apps
	// tries all.
	Quick bool

	// Polls tells that it asks for the same things again by a clock, so that a slow machine asks more
	// often until the page is at rest: of equal paths only one request is counted.
	Polls bool

	// Firefox tells that make test-apps measures it in Firefox too.
	Firefox bool

	// Steps are what a person does after the page was opened, as in a plan; "" measures the page's load.
	Steps string

	// start starts it and returns its page, of https://localhost.
	start func(ctx context.Context, h *host) (page string, err error)
}

// Apps lists the suite.
func Apps() []App {
	return []App{
		{Name: "Karma", Firefox: true, From: "npm karma", Has: "socket.io: polling, then WebSocket", start: startKarma},
		{Name: "mitmweb", Firefox: true, From: "Debian mitmproxy", Has: "WebSocket dashboard", start: startMitmweb},
		{Name: "Node-RED", From: "npm node-red", Has: "WebSocket dashboard, 11.5 MB in 90 requests", start: startNodeRED},
		{Name: "servor", Firefox: true, From: "npm servor", Has: "server-sent events", start: startServor},
		{Name: "Syncthing", From: "Debian syncthing", Has: "long polling with since=, CSRF cookie, its own TLS", Quick: true, Polls: true, start: startSyncthing},
		{Name: "Playwright trace viewer", From: "npm playwright-core", Has: "service worker that answers the page", start: startTraceViewer},
		{
			Name: "GraphiQL", From: "npm graphql-yoga", Has: "a query by POST, sent by a click", start: startGraphiQL,
			Steps: "  - name: query\n    click: 621,60\n",
		},
		{
			Name: "Vue on Vite", Firefox: true, From: "npm create-vue, vite",
			Has: "single-page app, a click leads to a lazy route; WebSocket of the dev server", start: startVue,
			Steps: "  - name: about\n    click: 286,431\n",
		},
		{Name: "Monaco", From: "npm monaco-editor", Has: "23 MB of scripts (4 MB as gzip), one of them a worker of 13 MB", start: startMonaco},
		{
			Name: "DokuWiki login", Firefox: true, From: "Debian dokuwiki", Has: "a person logs in: CSRF token, session cookie", Quick: true,
			start: startDokuWiki,
			Steps: "  - name: fill in\n    steps:\n      - click: 733,311\n      - type: writer\n      - key: Tab\n      - type: secret\n" +
				"  - name: log in\n    key: Enter\n",
		},
	}
}

// startKarma starts a test runner, whose page waits for tests.
func startKarma(ctx context.Context, h *host) (string, error) {
	config := fmt.Sprintf("module.exports = c => c.set({hostname: '127.0.0.1', port: %d, autoWatch: false, singleRun: false})\n", h.port)
	if err := h.write("karma.conf.js", config); err != nil {
		return "", err
	}
	if err := h.node("karma/bin/karma", "start", filepath.Join(h.dir, "karma.conf.js")); err != nil {
		return "", err
	}
	return h.fronted(ctx, "/")
}

// startMitmweb starts a proxy of which only the dashboard is used.
func startMitmweb(ctx context.Context, h *host) (string, error) {
	err := h.run(nil, "mitmweb", "--no-web-open-browser", "--web-host", "127.0.0.1", "--web-port", fmt.Sprint(h.port),
		"--listen-host", "127.0.0.1", "--listen-port", "0", "--set", "confdir="+h.dir)
	if err != nil {
		return "", err
	}
	return h.fronted(ctx, "/")
}

// startNodeRED starts the editor with an empty flow. It sends nothing home.
func startNodeRED(ctx context.Context, h *host) (string, error) {
	settings := fmt.Sprintf("module.exports = {uiHost: '127.0.0.1', uiPort: %d, telemetry: {enabled: false, updateNotification: false}}\n", h.port)
	if err := h.write("settings.js", settings); err != nil {
		return "", err
	}
	if err := h.node("node-red/red.js", "--userDir", h.dir, "--settings", filepath.Join(h.dir, "settings.js")); err != nil {
		return "", err
	}
	return h.fronted(ctx, "/")
}

// startServor serves a folder, which it lists, and reloads the page by events.
func startServor(ctx context.Context, h *host) (string, error) {
	if err := h.node("servor/cli.js", filepath.Join(h.modules, "karma"), "none.html", fmt.Sprint(h.port), "--reload"); err != nil {
		return "", err
	}
	return h.fronted(ctx, "/")
}

// startTraceViewer serves the viewer's files as they are.
func startTraceViewer(ctx context.Context, h *host) (string, error) {
	folder := filepath.Join(h.modules, "playwright-core/lib/vite/traceViewer")
	if err := h.node("servor/cli.js", folder, "index.html", fmt.Sprint(h.port)); err != nil {
		return "", err
	}
	return h.fronted(ctx, "/index.html")
}

// startGraphiQL starts a server with yoga's own page, which asks for the schema by POST.
func startGraphiQL(ctx context.Context, h *host) (string, error) {
	err := h.write("graphql.mjs", fmt.Sprintf(`
import { createServer } from 'node:http'
import { createSchema, createYoga } from 'graphql-yoga'
import { renderGraphiQL } from '@graphql-yoga/render-graphiql'
const schema = createSchema({
  typeDefs: 'type Book { id: ID! title: String! } type Query { books(first: Int): [Book!]! } type Mutation { add(title: String!): Book }',
  resolvers: { Query: { books: () => [{ id: 1, title: 'One' }] } },
})
createServer(createYoga({ schema, renderGraphiQL, logging: false })).listen(%d, '127.0.0.1')
`, h.port))
	if err != nil {
		return "", err
	}
	if err := h.run(nil, "node", "graphql.mjs"); err != nil {
		return "", err
	}
	return h.fronted(ctx, "/graphql?query=%7B%20books%20%7B%20title%20%7D%20%7D")
}

// startVue makes a project as a developer does, and serves it with Vite's dev server.
func startVue(ctx context.Context, h *host) (string, error) {
	if err := h.make("node", filepath.Join(h.modules, "create-vue/outfile.cjs"), "project", "--router", "--force"); err != nil {
		return "", err
	}
	h.dir = filepath.Join(h.dir, "project")
	if err := h.node("vite/bin/vite.js", "--host", "127.0.0.1", "--port", fmt.Sprint(h.port), "--strictPort"); err != nil {
		return "", err
	}
	return h.fronted(ctx, "/")
}

// startMonaco serves an editor for TypeScript, with the page of monaco's own instructions for its loader.
func startMonaco(ctx context.Context, h *host) (string, error) {
	err := h.write("index.html", `<!doctype html><meta charset="utf-8"><title>editor</title><link rel="icon" href="data:,">
<div id="container" style="width:800px;height:600px;border:1px solid grey"></div>
<script src="/vs/loader.js"></script>
<script>
require.config({ paths: { vs: '/vs' } });
require(['vs/editor/editor.main'], () => monaco.editor.create(document.getElementById('container'), {
  value: ['function x(n: number) {', '\tconsole.log("Hello world!" + n);', '}', 'x("one");'].join('\n'), language: 'typescript' }));
</script>
`)
	if err != nil {
		return "", err
	}
	if err := h.link("monaco-editor/dev/vs", "vs"); err != nil {
		return "", err
	}
	if err := h.node("servor/cli.js", h.dir, "index.html", fmt.Sprint(h.port)); err != nil {
		return "", err
	}
	return h.fronted(ctx, "/")
}
