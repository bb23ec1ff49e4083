// read.mjs DATA.warc.gz INDEX.cdxj: prints a line of JSON for each record, and
// one for each line of the index, read at the place that it names.
import { createReadStream, readFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { WARCParser } from "warcio";

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

async function tell(from, record) {
  const http = record.httpHeaders; // only after the payload was asked for
  const payload = await record.readFully(false); // the body as it was sent
  console.log(JSON.stringify({
    from,
    type: record.warcType,
    url: record.warcTargetURI,
    status: record.warcType === "response" && record.httpHeaders ? record.httpHeaders.statusCode : 0,
    method: record.warcType === "request" && record.httpHeaders ? record.httpHeaders.method : "",
    sha256: sha256(payload ?? new Uint8Array()),
  }));
}

const [data, index] = process.argv.slice(2);
for await (const record of new WARCParser(createReadStream(data))) {
  await tell("stream", record);
}
const whole = readFileSync(data);
for (const line of readFileSync(index, "utf8").trim().split("\n")) {
  const at = JSON.parse(line.slice(line.indexOf("{")));
  const offset = Number(at.offset), length = Number(at.length);
  const part = whole.subarray(offset, offset + length);
  const parser = new WARCParser(new Blob([part]).stream());
  await tell("index", await parser.parse());
}
