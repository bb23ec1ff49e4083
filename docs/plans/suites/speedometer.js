// Speedometer's mark: of each iteration the geometric mean over its tests of the time that their steps took, of which its
// score is the inverse; here the mean of the iterations, in ms. Its own measures SUITE.STEP-sync and SUITE.STEP-async tell it.
(() => {
  if (window !== window.top) return;
  let sums = new Map(), scores = [];
  new PerformanceObserver((list) => {
    for (const {name, duration} of list.getEntries().sort((a, b) => a.startTime + a.duration - b.startTime - b.duration)) {
      const step = name.match(/^(.+)\.[^.]+-(sync|async)$/);
      if (step && step[1] !== "Warmup") sums.set(step[1], (sums.get(step[1]) ?? 0) + duration);
      if (!/^iteration-\d+$/.test(name) || !sums.size) continue;
      scores.push(1000 / Math.exp([...sums.values()].reduce((sum, ms) => sum + Math.log(ms), 0) / sums.size));
      sums = new Map();
      performance.measure("1000 / score", {start: 0, duration: 1000 * scores.length / scores.reduce((a, b) => a + b)});
    }
  }).observe({type: "measure", buffered: true});
})();
