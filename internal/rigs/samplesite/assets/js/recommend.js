import { buster } from './dice.js';

// A query that is never the same twice, as many recommendation services ask for.
export async function recommend() {
  const items = await (await fetch(`https://api.shop.test/v1/recommendations?_=${buster}`)).json();
  const row = document.querySelector('#recommendations');
  row.replaceChildren(...items.map(item => {
    const card = document.createElement('article');
    const picture = Object.assign(new Image(360, 360), { src: item.picture, alt: item.name });
    const name = Object.assign(document.createElement('h3'), { textContent: item.name });
    const price = Object.assign(document.createElement('p'), { textContent: item.price });
    card.append(picture, name, price);
    return card;
  }));
}

export async function reviews() {
  const sum = await (await fetch('https://api.shop.test/v1/reviews')).json();
  document.querySelector('#review-count').textContent = sum.count.toLocaleString('en');
  document.querySelector('#review-average').textContent = sum.average;
  document.querySelector('#review-recommend').textContent = `${sum.recommend} %`;
}
