// Makes a run on a box with types that openapi-typescript made of the box's OpenAPI document:
// see generated_test.go.
import createClient from "openapi-fetch";
import type { components, paths } from "./box.js";

const { BOX, RUN_TOKEN, READ_TOKEN } = process.env;

// client is a client with a token. NODE_EXTRA_CA_CERTS names the box's certificate.
function client(token: string | undefined) {
  return createClient<paths>({ baseUrl: BOX, headers: { Authorization: `Bearer ${token}` } });
}

// good is the data of an answer that has no error.
function good<T>(what: string, answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(`${what}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

// follow reads a run's events to the end.
async function follow(body: ReadableStream<Uint8Array> | null) {
  if (body === null) throw new Error("no events");
  let text = "";
  for await (const part of body.pipeThrough(new TextDecoderStream())) text += part;
  const last = text.split("\n").filter((line) => line.startsWith("data: ")).at(-1) ?? "data: {}";
  const progress: components["schemas"]["Progress"] = JSON.parse(last.slice("data: ".length));
  console.log("events", progress.state);
}

const c = client(RUN_TOKEN);
console.log("health", good("health", await c.GET("/api/v1/health")).status);

const plan: components["schemas"]["Plan"] = {
  page: "https://www.shop.example/", name: "checkout", link: "lte", trials: 3, browser: "firefox-esr",
};
const kept = good("keep a plan", await c.PUT("/api/v1/workflows/{name}", {
  params: { path: { name: "checkout" }, header: { "If-None-Match": "*" } },
  body: { plan },
}));
console.log("workflow", kept.name, kept.version);
const { id } = good("start a run", await c.POST("/api/v1/workflows/{name}/runs", {
  params: { path: { name: "checkout" }, header: { "Idempotency-Key": "one" } },
  body: {},
}));
const events = await c.GET("/api/v1/runs/{id}/events", { params: { path: { id } }, parseAs: "stream" });
await follow(events.response.body);

const run = good("read the run", await c.GET("/api/v1/runs/{id}", { params: { path: { id } } }));
const first = run.summary?.[0];
console.log("run", run.state, run.trials?.length, first?.metric, first?.unit);
const file = await c.GET("/api/v1/runs/{id}/artifacts/{path}", {
  params: { path: { id, path: "trials/001/trial.json" } },
  parseAs: "text",
});
console.log("file", file.response.status, (await good("a file", file)).length > 0);
const perfherder = await c.GET("/api/v1/runs/{id}/export", {
  params: { path: { id }, query: { format: "perfherder" } },
  parseAs: "text",
});
console.log("export", perfherder.response.status, typeof JSON.parse(good("export", perfherder)) === "object");
console.log("archives", good("archives", await c.GET("/api/v1/archives")).archives?.length);

const refused = await client(READ_TOKEN).POST("/api/v1/runs", { body: plan });
console.log("refused", refused.error?.status, refused.error?.detail?.includes("needs the scope run"));
