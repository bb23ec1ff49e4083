// What a document or worker runs before anything of its own. script.go drops
// comment lines and joins the rest into one line, so every statement ends
// with its own semicolon and no comment stands behind code.
(function eidetic(a) {
"use strict";
var source = "(" + eidetic + ")(" + JSON.stringify(a) + ");";
var mark = Symbol.for("eidetic");

// xoshiro128** (Blackman and Vigna, 2018) over four words.
function generator(s) {
var x = s[0], y = s[1], z = s[2], w = s[3];
return function () {
var r = Math.imul(y, 5);
r = Math.imul(r << 7 | r >>> 25, 9);
var t = y << 9;
z ^= x; w ^= y; y ^= z; x ^= w; z ^= t;
w = w << 11 | w >>> 21;
return r >>> 0;
};
}

// FNV-1a over the name, then MurmurHash3's finaliser for each word, so that
// two frames of a page do not draw the same "unique" numbers.
function words(name) {
var h = 2166136261;
for (var i = 0; i < name.length; i++) {
h = Math.imul(h ^ name.charCodeAt(i), 16777619);
}
return a.seed.map(function (s, i) {
var k = s ^ h + i;
k = Math.imul(k ^ k >>> 16, 2246822507);
k = Math.imul(k ^ k >>> 13, 3266489909);
return (k ^ k >>> 16) | (i === 0 ? 1 : 0);
});
}

// A bound function shows itself as native code, as what it replaces did.
function replace(object, name, f, self) {
var bound = f.bind(self);
Object.defineProperty(bound, "name", {value: name, configurable: true});
var old = Object.getOwnPropertyDescriptor(object, name) || {writable: true, configurable: true, enumerable: true};
old.value = bound;
Object.defineProperty(object, name, old);
}

function attempt(f) {
try {
f();
} catch (e) {
return;
}
}

function install(win, name) {
if (win[mark]) {
return;
}
Object.defineProperty(win, mark, {value: true});

var next = generator(words(name + " random"));
replace(win.Math, "random", function () {
return ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
}, win.Math);

attempt(function () {
if (!win.crypto) {
return;
}
var word = generator(words(name + " crypto"));
var proto = Object.getPrototypeOf(win.crypto);
var real = proto.getRandomValues;
var bytes = function (b) {
for (var i = 0; i < b.length; i += 4) {
var r = word();
for (var j = 0; j < 4 && i + j < b.length; j++) {
b[i + j] = r >>> 8 * j;
}
}
return b;
};
replace(proto, "getRandomValues", function (array) {
real.call(win.crypto, array);
bytes(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
return array;
}, win.crypto);
if (proto.randomUUID) {
replace(proto, "randomUUID", function () {
var b = bytes(new Uint8Array(16));
b[6] = b[6] & 15 | 64;
b[8] = b[8] & 63 | 128;
var hex = Array.prototype.map.call(b, function (v) {
return (v + 256).toString(16).slice(1);
}).join("");
return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}, win.crypto);
}
});

if (a.date !== null) {
dates(win);
}
attempt(function () {
workers(win);
});
if (win.document) {
attempt(function () {
frames(win);
});
}
}

function dates(win) {
var D = win.Date;
var realNow = D.now;
var perf = win.performance;
var base = a.date;
var count = 0;
var peek = function () {
return a.mode === "clock" && perf ? a.date + Math.floor(perf.now()) : base;
};
// Web Page Replay's rule: time goes on by 50 ms with every 25 readings.
var now = function () {
if (a.mode !== "clock" && ++count > 25) {
base += 50;
count = 1;
}
return peek();
};
replace(D, "now", now, D);
var P = new Proxy(D, {
construct: function (t, args, nt) {
return Reflect.construct(t, args.length ? args : [now()], nt === P ? t : nt);
},
apply: function () {
return new D(now()).toString();
}
});
D.prototype.constructor = P;
Object.defineProperty(win, "Date", {value: P, writable: true, configurable: true, enumerable: false});

attempt(function () {
var proto = win.Intl.DateTimeFormat.prototype;
var format = Object.getOwnPropertyDescriptor(proto, "format");
var get = format.get;
format.get = function () {
var f = get.call(this);
return function (d) {
return f(d === undefined ? now() : d);
};
};
Object.defineProperty(proto, "format", format);
var parts = proto.formatToParts;
proto.formatToParts = function (d) {
return parts.call(this, d === undefined ? now() : d);
};
});
attempt(function () {
var T = win.Temporal;
if (!T) {
return;
}
var zone = T.Now.timeZoneId;
var instant = function () {
return T.Instant.fromEpochMilliseconds(now());
};
var zoned = function (tz) {
return instant().toZonedDateTimeISO(tz === undefined ? zone.call(T.Now) : tz);
};
replace(T.Now, "instant", instant, T.Now);
replace(T.Now, "zonedDateTimeISO", zoned, T.Now);
["DateTime", "Date", "Time"].forEach(function (k) {
replace(T.Now, "plain" + k + "ISO", function (tz) {
return zoned(tz)["toPlain" + k]();
}, T.Now);
});
});
// A cookie that a page lets expire an hour from its own now must live an
// hour in the browser, whose clock is the real one.
attempt(function () {
var cookie = Object.getOwnPropertyDescriptor(win.Document.prototype, "cookie");
var set = cookie.set;
cookie.set = function (v) {
var delta = realNow.call(D) - peek();
set.call(this, String(v).replace(/(;\s*expires=)([^;]+)/i, function (all, key, value) {
var t = D.parse(value);
return t === t && t > 864e5 ? key + new D(t + delta).toUTCString() : all;
}));
};
Object.defineProperty(win.Document.prototype, "cookie", cookie);
});
}

// Workers made from blobs and data URLs never pass the box.
function workers(win) {
var U = win.URL;
if (!U || !U.createObjectURL) {
return;
}
var create = U.createObjectURL;
var blobs = new Map();
replace(U, "createObjectURL", function (o) {
var url = create.call(U, o);
if (win.Blob && o instanceof win.Blob && blobs.size < 10000) {
blobs.set(url, o);
}
return url;
}, U);
var revoke = U.revokeObjectURL;
replace(U, "revokeObjectURL", function (url) {
blobs.delete(String(url));
return revoke.call(U, url);
}, U);
var seeded = function (url) {
var text = String(url);
if (blobs.has(text)) {
var b = blobs.get(text);
return create.call(U, new win.Blob([source, b], {type: b.type || "text/javascript"}));
}
var data = /^data:([^,]*?)(;base64)?,/i.exec(text);
if (!data) {
return url;
}
var body = text.slice(data[0].length);
return data[2] ? data[0] + win.btoa(source + win.atob(decodeURIComponent(body))) : data[0] + encodeURIComponent(source) + body;
};
["Worker", "SharedWorker"].forEach(function (kind) {
var W = win[kind];
if (!W) {
return;
}
var P = new Proxy(W, {
construct: function (t, args, nt) {
var to = nt === P ? t : nt;
if (typeof args[0] !== "string" && !(args[0] instanceof U)) {
return Reflect.construct(t, args, to);
}
var changed = args.slice();
attempt(function () {
changed[0] = seeded(args[0]);
});
return Reflect.construct(t, changed, to);
}
});
W.prototype.constructor = P;
Object.defineProperty(win, kind, {value: P, writable: true, configurable: true, enumerable: false});
});
if (win.Worklet) {
wrap(win.Worklet.prototype, "addModule", function (args) {
args[0] = seeded(args[0]);
});
}
}

// wrap changes the arguments of a method, which still shows itself as native.
function wrap(object, name, change) {
var old = Object.getOwnPropertyDescriptor(object, name);
old.value = new Proxy(old.value, {
apply: function (f, self, args) {
attempt(function () {
change(args);
});
return Reflect.apply(f, self, args);
}
});
Object.defineProperty(object, name, old);
}

// Frames without a document of their own on the network.
function frames(win) {
var proto = win.HTMLIFrameElement.prototype;
["contentWindow", "contentDocument"].forEach(function (name) {
var p = Object.getOwnPropertyDescriptor(proto, name);
var get = p.get;
p.get = function () {
var got = get.call(this);
attempt(function () {
var inner = got && (got.defaultView || got);
if (inner && inner.location.protocol === "about:") {
install(inner, nameless(inner));
}
});
return got;
};
Object.defineProperty(proto, name, p);
});
var tag = "<scr" + "ipt>" + source + "</scr" + "ipt>";
var put = function (html) {
return typeof html === "string" ? html.replace(/^(?:\s|<[!]--[\s\S]*?-->|<!doctype[^>]*>)*(?:<html(?:\s[^>]*)?>)?\s*(?:<head(?:\s[^>]*)?>)?/i, function (head) {
return head + tag;
}) : html;
};
var p = Object.getOwnPropertyDescriptor(proto, "srcdoc");
var set = p.set;
var get = p.get;
p.set = function (v) {
set.call(this, put(v));
};
p.get = function () {
return get.call(this).replace(tag, "");
};
Object.defineProperty(proto, "srcdoc", p);
var attribute = win.Element.prototype.setAttribute;
Object.defineProperty(proto, "setAttribute", {writable: true, configurable: true, enumerable: true, value: new Proxy(attribute, {
apply: function (f, self, args) {
var mine = args.length > 1 && String(args[0]).toLowerCase() === "srcdoc";
return Reflect.apply(f, self, mine ? [args[0], put(args[1])] : args);
}
})});

// In markup that scripts make, the script goes first: a doctype has no effect in srcdoc.
var escaped = tag.replace(/&/g, "&amp;").replace(/"/g, "&#34;").replace(/'/g, "&#39;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
var carried = function (html) {
return typeof html === "string" && html.indexOf("srcdoc") >= 0 ? html.replace(/(<iframe\s(?:[^>]*?\s)?srcdoc\s*=\s*["'])/gi, function (head) {
return head + escaped;
}) : html;
};
["write", "writeln"].forEach(function (name) {
wrap(win.Document.prototype, name, function (args) {
args.forEach(function (html, i) {
args[i] = carried(html);
});
});
});
wrap(win.Element.prototype, "insertAdjacentHTML", function (args) {
args[1] = carried(args[1]);
});
var inner = Object.getOwnPropertyDescriptor(win.Element.prototype, "innerHTML");
var setInner = inner.set;
inner.set = function (html) {
setInner.call(this, carried(html));
};
Object.defineProperty(win.Element.prototype, "innerHTML", inner);
}

// A frame whose document is not from the network is named by its place.
function nameless(win) {
var name = "frame";
attempt(function () {
var up = win.parent;
for (var i = 0; i < up.length && i < 1000; i++) {
if (up[i] === win) {
name += " " + i;
}
}
});
return name;
}

var root = globalThis;
var place = root.location ? root.location : {protocol: "worklet:"};
var name = place.protocol === "http:" || place.protocol === "https:" ? place.origin + place.pathname : root.document && place.protocol === "about:" ? nameless(root) : place.protocol;
install(root, name + (root.document ? "" : " worker"));

if (root.document) {
attempt(function () {
var script = root.document.currentScript;
if (script) {
script.remove();
}
});
attempt(function () {
if (root.lab || root.top !== root || !root.fetch) {
return;
}
var send = root.fetch;
var lab = {done: function (name) {
return send.call(root, a.path + "done", {method: "POST", keepalive: true, credentials: "omit",
body: JSON.stringify({name: name === undefined ? "" : String(name), at_ms: root.performance.now()})});
}};
Object.defineProperty(root, "lab", {value: lab, writable: true, configurable: true, enumerable: false});
});
}
})
