// A regression to be found: paying computes for 30 ms more.
addEventListener('click', (event) => {
  if (event.target.id !== 'pay') return;
  for (const until = performance.now() + 30; performance.now() < until;);
}, true);
