// The store's own script: search by typing, the basket, and paying.
const $ = (id) => document.getElementById(id);
const api = 'https://api.shop.test/v1/';

// ?busy=pay:30 makes the handler of one step compute for 30 ms longer: a regression to be found.
const asked = new URLSearchParams(location.search).get('busy') ?? '';
const [slow, ms] = asked.split(':');
function busy(step) {
  if (step !== slow) return;
  const end = performance.now() + Math.min(Number(ms) || 0, 1000);
  while (performance.now() < end);
}
for (const link of document.querySelectorAll('a[href^="/store"]')) link.search = location.search;

async function post(path, body) {
  const answer = await fetch(api + path, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  });
  return answer.json();
}

// Each keystroke asks; what an earlier one is answered after a later one is dropped.
let latest = 0;
$('search').addEventListener('input', async (e) => {
  if (!$('list')) return;
  const turn = ++latest;
  const answer = await fetch(api + 'search?q=' + encodeURIComponent(e.target.value));
  const { matches } = await answer.json();
  if (turn !== latest) return;
  busy('search');
  const rows = new Map([...document.querySelectorAll('.row')].map((r) => [r.dataset.product, r]));
  $('found').textContent = matches.length === 1 ? '1 object' : matches.length + ' objects';
  for (const r of rows.values()) r.classList.toggle('other', !matches.includes(r.dataset.product));
  const order = [...matches, ...[...rows.keys()].filter((id) => !matches.includes(id))];
  $('list').replaceChildren(...order.map((id) => rows.get(id)));
});

$('add')?.addEventListener('click', async () => {
  const { pieces, line, total } = await post('basket', { id: document.querySelector('main').dataset.product, qty: 1 });
  busy('basket');
  $('count').textContent = pieces;
  $('line').textContent = line;
  $('total').textContent = 'Total ' + total;
  $('drawer').hidden = false;
});

$('pay').addEventListener('click', async () => {
  $('pay').disabled = true;
  $('pay').textContent = 'Paying …';
  const { order } = await post('orders', { id: document.querySelector('main').dataset.product, qty: 1 });
  busy('pay');
  $('drawer').classList.add('paid');
  $('drawer').innerHTML = '<h2>Thank you</h2><p id="order"></p><p>A letter with the way to track it is on its way.</p>';
  $('order').textContent = 'Order ' + order;
  window.lab?.done?.('pay');
});
