import { clock, token, gift } from './dice.js';

const two = n => String(n).padStart(2, '0');

export function greet() {
  const hour = clock.getHours();
  const part = hour < 5 ? 'Good night' : hour < 12 ? 'Good morning' : hour < 18 ? 'Good afternoon' : 'Good evening';
  document.querySelector('#greeting').textContent = `${part} · ${two(hour)}:${two(clock.getMinutes())}`;
  document.querySelector('#token').textContent = token;
  document.querySelector('#gift').textContent = `GIFT-${gift}`;
}
