const url = 'https://api.shop.test/v1/stock';

// The same URL twice, one after the other: the second answer is another one.
export async function stock() {
  const first = await (await fetch(url)).json();
  const second = await (await fetch(url)).json();
  for (const card of document.querySelectorAll('[data-product]')) {
    const left = second.left[card.dataset.product];
    const label = card.querySelector('.left');
    label.textContent = left < 7 ? `Only ${left} left` : `${left} in stock`;
    label.classList.toggle('low', left < 7);
  }
  document.querySelector('#stock').textContent = `Stock lists ${first.revision} and ${second.revision}`;
}
