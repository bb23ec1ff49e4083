// Answers worker-data itself once it controls a page: from its second load on.
addEventListener("install", () => skipWaiting());
addEventListener("fetch", e => {
  if (new URL(e.request.url).pathname === "/tricks/worker-data") e.respondWith(new Response("answered by the service worker"));
});
