// write.mjs OUT.warc.gz: writes a WARC with warcio's own writer.
import { createWriteStream } from "node:fs";
import { WARCRecord, WARCSerializer } from "warcio";

const out = createWriteStream(process.argv[2]);
const url = "https://www.example.test/page?q=1";
const date = "2026-05-06T07:08:09Z";
const text = (s) => (async function* () { yield new TextEncoder().encode(s); })();

const records = [
  WARCRecord.createWARCInfo({ filename: "theirs.warc.gz", warcVersion: "WARC/1.1" }, { software: "warcio.js" }),
  WARCRecord.create({ url, date, type: "response", warcVersion: "WARC/1.1", statusline: "HTTP/1.1 200 OK",
    httpHeaders: { "Content-Type": "text/html", "X-Theirs": "yes" } }, text("<p>theirs</p>")),
  WARCRecord.create({ url, date, type: "request", warcVersion: "WARC/1.1", statusline: "GET /page?q=1 HTTP/1.1",
    httpHeaders: { Host: "www.example.test" } }, text("")),
  WARCRecord.create({ url: "https://www.example.test/plain.txt", date, type: "resource", warcVersion: "WARC/1.1",
    warcHeaders: { "Content-Type": "text/plain" } }, text("a resource")),
];
for (const record of records) {
  out.write(await WARCSerializer.serialize(await record, { gzip: true }));
}
await new Promise((done) => out.end(done));
