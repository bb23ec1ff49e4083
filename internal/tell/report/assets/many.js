"use strict";
(() => {
const back = document.querySelector("#back");
if (/^https?:$/.test(location.protocol) && /^\/runs\/[^/]+\/report\.html$/.test(location.pathname)) {
  back.firstElementChild.href = "/";
  back.children[1].href = `/run?run=${location.pathname.split("/")[2]}`;
  back.lastElementChild.href = back.dataset.name ? `/history?${new URLSearchParams({ name: back.dataset.name })}` : "/history";
  back.hidden = false;
  const run = location.pathname.split("/")[2], exports = document.querySelector("#exports");
  [["junit", "JUnit"], ["csv", "CSV"], ["markdown", "Markdown"], ["perfherder", "Perfherder"]].forEach(([format, textContent], i) => {
    const href = `/api/v1/runs/${run}/export?format=${format}&report=${encodeURIComponent(location.href.split("#")[0])}`;
    exports.append(i ? ", " : "", Object.assign(document.createElement("a"), { href, textContent }));
  });
  exports.hidden = false;
}
const rows = document.querySelector("#data");
if (rows) document.querySelector("#cells").append(csvButton("changes", () => JSON.parse(rows.textContent), "Download all changes as CSV"));
const theme = document.querySelector("#theme"), root = document.documentElement;
const recall = () => { try { return localStorage.getItem("eidetic-theme"); } catch { return null; } };
const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const label = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-label", `Switch to the ${dark() ? "light" : "dark"} theme`); };
if (["light", "dark"].includes(recall())) root.dataset.theme = recall();
theme.hidden = false;
label();
theme.addEventListener("click", () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try { localStorage.setItem("eidetic-theme", root.dataset.theme); } catch { /* it is not kept */ }
  label();
});
})();
