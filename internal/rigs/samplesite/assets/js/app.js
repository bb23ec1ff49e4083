import { chance, clock, token } from './dice.js';
import { greet } from './greeting.js';
import { stock } from './stock.js';
import { quote } from './quote.js';
import { recommend, reviews } from './recommend.js';
import { material } from './material.js';

greet();

// Today's pick: one of the products that the server sent, chosen here.
const cards = [...document.querySelectorAll('[data-product]')];
const pick = cards[chance(3, cards.length)];
document.querySelector('#pick-name').textContent = pick.querySelector('h3').textContent;
document.querySelector('#pick-price').textContent = pick.querySelector('.price').firstChild.textContent;
pick.classList.add('picked');
document.querySelector('#pick').animate(
  [{ opacity: 0, transform: 'translateY(14px)' }, { opacity: 1, transform: 'none' }],
  { duration: 450, easing: 'cubic-bezier(.2,.8,.2,1)' });

const hero = document.querySelector('#hero-picture');
const show = () => hero.classList.add('shown');
if (hero.complete) show(); else hero.addEventListener('load', show);

stock();
quote();
recommend();
reviews();
material();
fetch('https://api.shop.test/v1/events', {
  method: 'POST',
  headers: { 'content-type': 'text/plain' },
  body: JSON.stringify({ event: 'view', token, at: clock.toISOString(), request: window.shop.request }),
}).then(answer => answer.json());
