import { chance } from './dice.js';

async function ask(order) {
  const answer = await fetch('https://api.shop.test/v1/quote', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(order),
  });
  return answer.json();
}

// Two baskets, one URL: only the body tells them apart.
export async function quote() {
  const ids = window.shop.products;
  const items = [{ id: ids[chance(0, ids.length)], qty: 1 + chance(1, 3) }, { id: ids[chance(2, ids.length)], qty: 1 }];
  const standard = await ask({ items, delivery: 'standard' });
  const express = await ask({ items, delivery: 'express', voucher: 'WELCOME' });
  document.querySelector('#bag-count').textContent = standard.pieces;
  document.querySelector('#bag-total').textContent = standard.total;
  document.querySelector('#express').textContent = `Express with voucher ${express.total}`;
}
