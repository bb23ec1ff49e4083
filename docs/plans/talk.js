// A worker that counts, and a page that asks it: what is said between them is on the timeline with messages: true.
addEventListener("load", () => {
  if (window !== top) return;
  const count = `onmessage = e => {
    lab.begin("count to " + e.data.to, {group: "app"});
    for (const end = performance.now() + 15; performance.now() < end;);
    lab.end("count to " + e.data.to, {group: "app"});
    postMessage({sum: e.data.to * (e.data.to + 1) / 2});
  }`;
  const worker = new Worker(URL.createObjectURL(new Blob([count])));
  let to = 0;
  const next = () => {
    if (++to > 6) return lab.end("sums", {group: "app"});
    lab.mark("ask for " + to, {group: "app"});
    setTimeout(() => worker.postMessage({to}), 20);
  };
  lab.begin("sums", {group: "app"});
  worker.onmessage = next;
  next();
});
