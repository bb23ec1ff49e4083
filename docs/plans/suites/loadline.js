// LoadLine's marks, from the navigation: of Google's pages the largest contentful paint; of CNN's article when its main part is shown.
// Its marks of the other pages are of its own traces; the largest contentful paint stands for them.
(() => {
  if (window !== window.top) return;
  const mark = (at) => performance.measure("LoadLine", {start: 0, duration: at});
  if (location.hostname.endsWith("cnn.com")) {
    const look = (now) => document.getElementById("maincontent") ? requestAnimationFrame(mark) : requestAnimationFrame(look);
    return requestAnimationFrame(look);
  }
  // The last one is told of when the page was still for a second: its largest part is there.
  let wait;
  new PerformanceObserver((list) => {
    const at = list.getEntries().at(-1).startTime;
    clearTimeout(wait);
    wait = setTimeout(() => mark(at), 1000);
  }).observe({type: "largest-contentful-paint", buffered: true});
})();
