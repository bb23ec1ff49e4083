// Everything that this load leaves to chance or to the clock, drawn at once and
// in one order: later code runs when the network lets it, and must not draw.
const now = new Date();
const roll = Array.from({ length: 8 }, () => Math.random());
const bytes = crypto.getRandomValues(new Uint8Array(4));

export const clock = now;
export const chance = (i, n) => Math.floor(roll[i] * n);
export const token = crypto.randomUUID().slice(0, 8).toUpperCase();
export const gift = Array.from(bytes, b => b.toString(16).padStart(2, '0')).join('').toUpperCase();
export const buster = `${Date.now()}${Math.random()}`;
