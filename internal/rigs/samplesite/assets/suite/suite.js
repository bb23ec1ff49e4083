// What the pages of the suite share: knobs from the URL, and things to show that are the same in every load.
const knob = (name, usual) => Number(new URLSearchParams(location.search).get(name) ?? usual);
const word = (name, usual) => new URLSearchParams(location.search).get(name) ?? usual;
// after calls f so many ms from now, or at once.
const after = (ms, f) => ms > 0 ? setTimeout(f, ms) : f();
// rolls draws numbers from 0 to 1, the same in every load.
const rolls = (seed) => () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
const words = "harbour lamp winter table letter garden copper river window market silver cloud bread engine paper island".split(" ");
const sentence = (roll, n) => Array.from({length: n}, () => words[Math.floor(roll() * words.length)]).join(" ") + ".";
// told says what the page did of a knob by its own clock, as the machine may have kept it from more: the last measure of that name holds.
const told = (name, value) => performance.measure("did " + name, {start: 0, duration: value});
// drawn calls f with the page's clock at the frame that draws what was changed before. The difference of two is that of their pictures.
const drawn = (f) => requestAnimationFrame(f);
// painted calls f with the page's clock at the frame after that: what was changed before is then on its way.
const painted = (f) => drawn(() => requestAnimationFrame(f));
// answered says how long the answers to inputs took so far, from the browser's time stamp of each to the frame that shows it: their median.
// Two marks put both ends onto the timeline of the film.
const waits = [];
const answered = (name, event) => painted((now) => {
  waits.push(now - event.timeStamp);
  performance.mark("input of " + name, {startTime: event.timeStamp});
  performance.mark("frame after " + name, {startTime: now});
  told(name, waits.toSorted((a, b) => a - b)[waits.length >> 1]);
});
