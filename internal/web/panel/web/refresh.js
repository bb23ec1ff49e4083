// Changes the page only where it differs: a node that stays keeps the focus and an open
// menu.

// alike says whether one node can be changed into the other. Nodes of a list are
// identified by data-key.
const alike = (a, b) => a.nodeName === b.nodeName && a.dataset?.key === b.dataset?.key;

// become changes old to equal fresh.
export function become(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) { old.data = fresh.data; return; } // a text node
  for (const name of old.getAttributeNames()) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  replace(old, [...fresh.childNodes]);
}

// replace makes children the content of parent, and keeps existing nodes that are alike.
function replace(parent, children) {
  const left = new Set(parent.childNodes), pairs = [];
  for (const fresh of children) {
    let found = null;
    for (const old of left) if (alike(old, fresh)) { found = old; break; }
    left.delete(found);
    pairs.push([found, fresh]);
  }
  for (const old of left) old.remove();
  let at = parent.firstChild;
  for (const [old, fresh] of pairs) {
    if (old) become(old, fresh);
    const node = old || fresh;
    if (node === at) at = at.nextSibling; else parent.insertBefore(node, at);
  }
}

// refresh makes children the content of parent. The focus stays where it was; if its node
// is gone it moves to elsewhere, and not to the top of the page.
export function refresh(parent, children, elsewhere) {
  const focused = parent.contains(document.activeElement) && document.activeElement;
  replace(parent, children);
  if (!focused || focused === document.activeElement) return;
  if (parent.contains(focused)) focused.focus(); else elsewhere?.focus();
}

// write sets a node's text if it differs.
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
