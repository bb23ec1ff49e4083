// What a document or worker runs before anything of its own. script.go drops
// comment lines and joins the rest into one line, so every statement ends
// with its own semicolon and no comment stands behind code.
(function eidetic(a) {
"use strict";
// In documents the text is the same everywhere: policies name its hash, and it is known again where it is taken out.
var source = "(" + eidetic + ")(" + JSON.stringify(a) + ");";
// What has no origin of its own (blob, data and sandboxed documents, and their workers) reaches the box at the origin that
// made it.
if (globalThis.location && /^https?:$/.test(globalThis.location.protocol)) {
a.home = globalThis.location.origin;
} else if (!a.home && globalThis.document && globalThis.document.currentScript) {
a.home = globalThis.document.currentScript.getAttribute("data-home");
}
var box = (a.home || "") + a.path;
var ofWorkers = "(" + eidetic + ")(" + JSON.stringify(a) + ");";
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

// What stands in for a function of the browser, or for what stands in for one, keeps its name, length and text.
var natives = new WeakMap();
var original = natives.get.bind(natives);

function alike(f, old) {
natives.set(f, old);
["name", "length"].forEach(function (k) {
Object.defineProperty(f, k, {value: old[k], configurable: true});
});
return f;
}

// replace is for functions that are called often: a bound arrow function is quicker than a Proxy, and
// is no constructor either.
function replace(object, name, f) {
var old = Object.getOwnPropertyDescriptor(object, name);
old.value = alike(f.bind(object), old.value);
Object.defineProperty(object, name, old);
}

// stand returns a function whose calls go to f, with the function that it stands for.
function stand(old, f) {
var p = new Proxy(old, {apply: f});
natives.set(p, original(old) || old);
return p;
}

function wrap(object, name, f) {
var old = Object.getOwnPropertyDescriptor(object, name);
old.value = stand(old.value, f);
Object.defineProperty(object, name, old);
}

function accessor(object, name, get, set) {
var p = Object.getOwnPropertyDescriptor(object, name);
if (get) {
p.get = stand(p.get, get);
}
if (set) {
p.set = stand(p.set, set);
}
Object.defineProperty(object, name, p);
}

// change changes the arguments of a method.
function change(object, name, f) {
wrap(object, name, function (old, self, args) {
attempt(function () {
f(args);
});
return Reflect.apply(old, self, args);
});
}

// constructor puts P in the place of a constructor.
function constructor(win, name, construct, apply) {
var old = win[name];
var handler = {construct: function (t, args, nt) {
return construct(t, args, nt === P ? t : nt);
}};
if (apply) {
handler.apply = apply;
}
var P = new Proxy(old, handler);
natives.set(P, original(old) || old);
old.prototype.constructor = P;
Object.defineProperty(win, name, {value: P, writable: true, configurable: true, enumerable: false});
}

function attempt(f) {
try {
f();
} catch (e) {
return;
}
}

function install(win, name, modified) {
if (win[mark]) {
return;
}
// The real origin of the page's clock is for our own scripts, which tell it to the box.
var began = 0;
attempt(function () {
began = win.performance.timeOrigin;
});
Object.defineProperty(win, mark, {value: {origin: began, lot: win.Math.random()}});
wrap(win.Function.prototype, "toString", function (f, self, args) {
return Reflect.apply(f, original(self) || self, args);
});

var next = generator(words(name + " random"));
replace(win.Math, "random", () => ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992);
attempt(function () {
lots(win, name);
});
if (a.date !== null) {
dates(win, modified);
}
attempt(function () {
connection(win);
});
var seeds = {};
attempt(function () {
trusts.set(win, trusted(win));
workers(win, seeds);
});
attempt(function () {
madeByWorker(win);
});
if (win.document) {
attempt(function () {
frames(win, seeds);
});
attempt(function () {
dialogues(win, seeds);
});
}
var tell;
attempt(function () {
tell = laboratory(win, name);
});
// HERE messages.js
}

// dialogues tells the box what a page asks a person in a window of the browser's own, and answers where the plan says how.
function dialogues(win, seeds) {
var send = win.fetch;
var path = box + "dialogue";
var used = function () {
return win.navigator.userActivation ? win.navigator.userActivation.hasBeenActive : true;
};
var tell = function (kind, text) {
var body = JSON.stringify({kind: kind, text: text === undefined ? "" : String(text).slice(0, 200), answered: kind === "permission" || kind === "chooser" ? a.dialog === "dismiss" : a.dialog !== ""});
attempt(function () {
send.call(win, path, {method: "POST", keepalive: true, credentials: "omit", body: body}).then(function () {}, function () {});
});
};
var answer = function (name, f) {
attempt(function () {
wrap(win, name, function (old, self, args) {
if (args.length) {
args[0] = String(args[0]);
}
tell(name, args[0]);
return a.dialog ? f(args) : Reflect.apply(old, self, args);
});
});
};
answer("alert", function () {});
answer("confirm", function () {
return a.dialog === "accept";
});
answer("prompt", function (args) {
return a.dialog !== "accept" ? null : args[1] === undefined ? "" : String(args[1]);
});
answer("print", function () {});

// A browser asks whether to leave only after somebody has used the page.
var leaving = function () {
if (used()) {
tell("beforeunload");
}
};
attempt(function () {
var proto = win.BeforeUnloadEvent.prototype;
Object.defineProperty(proto, "preventDefault", {writable: true, configurable: true, enumerable: true, value: stand(win.Event.prototype.preventDefault, function (old, self, args) {
leaving();
return a.dialog ? undefined : Reflect.apply(old, self, args);
})});
accessor(proto, "returnValue", null, function (set, self, args) {
leaving();
return a.dialog ? undefined : Reflect.apply(set, self, args);
});
accessor(win, "onbeforeunload", function (get, self, args) {
var f = Reflect.apply(get, self, args);
return f && original(f) || f;
}, function (set, self, args) {
var f = args[0];
return Reflect.apply(set, self, [typeof f !== "function" ? f : alike(function (e) {
var got = Reflect.apply(f, this, [e]);
if (got === undefined || got === null) {
return got;
}
leaving();
return a.dialog ? undefined : got;
}, f)]);
});
});

// What needs a permission opens a window where neither the page has it nor was refused it.
var asks = function (permission, text) {
var ask = function () {
tell("permission", text);
};
var state = win.navigator.permissions && win.navigator.permissions.query;
if (!state) {
return ask();
}
state.call(win.navigator.permissions, {name: permission}).then(function (s) {
if (s.state === "prompt") {
ask();
}
}, ask);
};
var guard = function (object, name, permission, refuse) {
attempt(function () {
wrap(object, name, function (old, self, args) {
attempt(function () {
asks(typeof permission === "string" ? permission : permission(args), name);
});
return a.dialog === "dismiss" ? refuse(args) : Reflect.apply(old, self, args);
});
});
};
var later = win.setTimeout;
var unplaced = function (args) {
later.call(win, function () {
if (typeof args[1] === "function") {
args[1]({code: 1, message: "User denied Geolocation", PERMISSION_DENIED: 1, POSITION_UNAVAILABLE: 2, TIMEOUT: 3});
}
}, 0);
return 0;
};
var refused = function () {
return win.Promise.reject(new win.DOMException("Permission denied", "NotAllowedError"));
};
attempt(function () {
guard(win.Geolocation.prototype, "getCurrentPosition", "geolocation", unplaced);
guard(win.Geolocation.prototype, "watchPosition", "geolocation", unplaced);
});
attempt(function () {
guard(win.Notification, "requestPermission", "notifications", function (args) {
if (typeof args[0] === "function") {
later.call(win, args[0], 0, "denied");
}
return win.Promise.resolve("denied");
});
});
attempt(function () {
guard(win.MediaDevices.prototype, "getUserMedia", function (args) {
return args[0] && args[0].video ? "camera" : "microphone";
}, refused);
guard(win.MediaDevices.prototype, "getDisplayMedia", "display-capture", refused);
});
attempt(function () {
guard(win.Navigator.prototype, "requestMIDIAccess", "midi", refused);
});
// Chromium and its relatives decide on these by themselves; Firefox asks.
var isChromium = /Chrome\//.test(win.navigator.userAgent);
if (!isChromium) {
attempt(function () {
guard(win.StorageManager.prototype, "persist", "persistent-storage", function () {
return win.Promise.resolve(false);
});
});
attempt(function () {
guard(win.Navigator.prototype, "registerProtocolHandler", "register-protocol-handler", function () {});
});
}

// A person chooses a passkey, a card or a device. A page that may not ask is refused at once.
var never = win.clearTimeout;
var choose = function (type, name, nothing, asks) {
attempt(function () {
wrap(win[type].prototype, name, function (old, self, args) {
if (asks && !asks(args[0])) {
return Reflect.apply(old, self, args);
}
if (a.dialog === "dismiss") {
tell("chooser", type + "." + name);
return nothing ? win.Promise.reject(new win.DOMException("Nothing was chosen", nothing)) : win.Promise.resolve([]);
}
var open = later.call(win, tell, 100, "chooser", type + "." + name);
return Reflect.apply(old, self, args).then(function (chosen) {
never.call(win, open);
return chosen;
}, function (why) {
never.call(win, open);
throw why;
});
});
});
};
var asksForPasskey = function (o) {
return !!o && !!o.publicKey && o.mediation !== "conditional" && o.mediation !== "silent";
};
choose("CredentialsContainer", "get", "NotAllowedError", asksForPasskey);
choose("CredentialsContainer", "create", "NotAllowedError", asksForPasskey);
choose("PaymentRequest", "show", "AbortError");
choose("Bluetooth", "requestDevice", "NotFoundError");
choose("USB", "requestDevice", "NotFoundError");
choose("Serial", "requestPort", "NotFoundError");
choose("HID", "requestDevice", "");

// What no browser shows itself, another program does. Chromium and its relatives ask before they start it, or start it;
// Firefox asks only for what it knows a program for.
seeds.elsewhere = function (url) {
if (!isChromium) {
return false;
}
var scheme = /^\s*([a-z][a-z0-9+.-]*):/i.exec(url);
if (!scheme || /^(https?|data|blob|about|javascript|file|filesystem|view-source|chrome.*|moz.*|resource)$/i.test(scheme[1])) {
return false;
}
tell("program", url);
return a.dialog !== "";
};
attempt(function () {
win.navigation.addEventListener("navigate", function (e) {
if (seeds.elsewhere(e.destination.url)) {
e.preventDefault();
}
});
});
}

// What crypto draws by lot.
function lots(win, name) {
if (!win.crypto) {
return;
}
var word = generator(words(name + " crypto"));
var bytes = function (b) {
for (var i = 0; i < b.length; i += 4) {
var r = word();
for (var j = 0; j < 4 && i + j < b.length; j++) {
b[i + j] = r >>> 8 * j;
}
}
return b;
};
var proto = Object.getPrototypeOf(win.crypto);
wrap(proto, "getRandomValues", function (f, self, args) {
var array = Reflect.apply(f, self, args);
bytes(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
return array;
});
if (!proto.randomUUID) {
return;
}
wrap(proto, "randomUUID", function (f, self, args) {
Reflect.apply(f, self, args);
var b = bytes(new Uint8Array(16));
b[6] = b[6] & 15 | 64;
b[8] = b[8] & 63 | 128;
var hex = Array.prototype.map.call(b, function (v) {
return (v + 256).toString(16).slice(1);
}).join("");
return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
});
// A key of bytes is imported from seeded ones. Keys of other kinds cannot be made from a seed.
var subtle = win.SubtleCrypto && win.SubtleCrypto.prototype;
if (!subtle) {
return;
}
var importKey = subtle.importKey;
wrap(subtle, "generateKey", function (f, self, args) {
var made;
attempt(function () {
var alg = args[0];
var name = String(alg.name).toUpperCase();
var length = alg.length;
var use = {name: name};
if (name === "HMAC") {
use.hash = alg.hash;
length = length === undefined ? /(384|512)$/.test(alg.hash.name || alg.hash) ? 1024 : 512 : length;
}
if (name === "HMAC" ? length > 0 && length <= 65536 && length % 8 === 0 : /^AES-(CTR|CBC|GCM|KW)$/.test(name) && (length === 128 || length === 192 || length === 256)) {
made = Reflect.apply(importKey, self, ["raw", bytes(new Uint8Array(length / 8)), use].concat(args.slice(1)));
}
});
return made || Reflect.apply(f, self, args);
});
}

function dates(win, modified) {
var D = win.Date;
var realNow = D.now;
var base = a.date;
var count = 0;
var peek = function () {
return base;
};
// Web Page Replay's rule: time goes on by 50 ms with every 25 readings.
var now = () => {
if (++count > 25) {
base += 50;
count = 1;
}
return peek();
};
replace(D, "now", now);
constructor(win, "Date", function (t, args, nt) {
return Reflect.construct(t, args.length ? args : [now()], nt);
}, function () {
return new D(now()).toString();
});

attempt(function () {
var proto = win.Intl.DateTimeFormat.prototype;
accessor(proto, "format", function (get, self) {
var f = Reflect.apply(get, self, []);
return alike((d) => f(d === undefined ? now() : d), f);
});
wrap(proto, "formatToParts", function (f, self, args) {
return Reflect.apply(f, self, args[0] === undefined ? [now()] : args);
});
});
attempt(function () {
var T = win.Temporal;
if (!T) {
return;
}
var zone = T.Now.timeZoneId;
var instant = () => T.Instant.fromEpochMilliseconds(now());
var zoned = (tz) => instant().toZonedDateTimeISO(tz === undefined ? zone.call(T.Now) : tz);
replace(T.Now, "instant", instant);
replace(T.Now, "zonedDateTimeISO", zoned);
["DateTime", "Date", "Time"].forEach(function (k) {
replace(T.Now, "plain" + k + "ISO", (tz) => zoned(tz)["toPlain" + k]());
});
});
attempt(function () {
constructor(win, "File", function (t, args, nt) {
var o = args[2];
return Reflect.construct(t, args.length < 2 || o && o.lastModified !== undefined ? args : [args[0], args[1], Object.assign({lastModified: peek()}, o)], nt);
});
});
attempt(function () {
answered(win, D, peek, function () {
return realNow.call(D);
});
});
attempt(function () {
origins(win);
});
// A cookie that a page lets expire an hour from its own now must live an
// hour in the browser, whose clock is the real one.
var ahead = function () {
return realNow.call(D) - peek();
};
attempt(function () {
expiries(win, ahead);
});
if (!win.document) {
return;
}
attempt(function () {
accessor(win.Document.prototype, "lastModified", function (get, self) {
if (self !== win.document) {
return Reflect.apply(get, self, []);
}
var d = new D(modified || peek());
return [d.getMonth() + 1, d.getDate(), d.getFullYear()].map(two).join("/") + " " + [d.getHours(), d.getMinutes(), d.getSeconds()].map(two).join(":");
});
});
attempt(function () {
accessor(win.Document.prototype, "cookie", null, function (set, self, args) {
return Reflect.apply(set, self, [String(args[0]).replace(/(;\s*expires=)([^;]+)/i, function (all, key, value) {
var t = D.parse(value);
return t === t && t > 864e5 ? key + new D(t + ahead()).toUTCString() : all;
})]);
});
});
}

// expiries are those of cookies in the Cookie Store API, which service workers have, too.
function expiries(win, ahead) {
if (!win.CookieStore) {
return;
}
var proto = win.CookieStore.prototype;
change(proto, "set", function (args) {
var o = args[0];
if (o && o.expires > 864e5) {
args[0] = Object.create(o, {expires: {value: +o.expires + ahead()}});
}
});
["get", "getAll"].forEach(function (k) {
wrap(proto, k, function (f, self, args) {
return Reflect.apply(f, self, args).then(function (got) {
[].concat(got).forEach(function (c) {
if (c && c.expires) {
c.expires -= ahead();
}
});
return got;
});
});
});
}

// What a script reads of an answer's dates is as far from the page's clock as it is from the browser's, which is ahead of
// it. An answer that was made just now is of the page's now: how long it took differs from load to load.
function answered(win, D, peek, real) {
var dated = /^(?:date|expires|last-modified)$/i;
var near = 3000;
var moved = function (text) {
var t = D.parse(text);
if (!/GMT$/.test(text) || t !== t || t < 6311e8 || t > 253e12) {
return text;
}
var now = peek();
var by = real() - now;
return new D(Math.abs(t - by - now) < near ? now : t - by).toUTCString();
};
if (win.Response) {
// Those that a script has made, such as a service worker's, say what that wrote.
var answers = new WeakSet();
first(win.Response.prototype, "headers", function () {
var proto = win.Headers.prototype;
var set = proto.set;
var each = proto.forEach;
wrap(proto, "get", function (f, self, args) {
var v = Reflect.apply(f, self, args);
return v !== null && answers.has(self) && dated.test(args[0]) ? moved(v) : v;
});
["entries", "values", "forEach"].forEach(function (k) {
var own = proto[k] === proto[Symbol.iterator];
wrap(proto, k, function (f, self, args) {
var read = self;
if (answers.has(self)) {
read = new win.Headers();
each.call(self, function (v, name) {
set.call(read, name, dated.test(name) ? moved(v) : v);
});
}
return Reflect.apply(f, read, args);
});
if (own) {
Object.defineProperty(proto, Symbol.iterator, {value: proto[k], writable: true, configurable: true, enumerable: false});
}
});
}, function (headers, response) {
if (response.url && response.type !== "default") {
answers.add(headers);
}
});
}
if (win.XMLHttpRequest) {
var proto = win.XMLHttpRequest.prototype;
wrap(proto, "getResponseHeader", function (f, self, args) {
var v = Reflect.apply(f, self, args);
return v !== null && dated.test(args[0]) ? moved(v) : v;
});
wrap(proto, "getAllResponseHeaders", function (f, self, args) {
return Reflect.apply(f, self, args).replace(/^(date|expires|last-modified): (.*)$/gim, function (all, name, v) {
return name + ": " + moved(v.trim());
});
});
}
}

function two(n) {
return n < 10 ? "0" + n : String(n);
}

// first calls prepare before the first reading of an attribute, so that what few pages read costs nothing
// when a page starts, and each with what every reading gets.
function first(object, name, prepare, each) {
var isReady = false;
accessor(object, name, function (get, self) {
var v = Reflect.apply(get, self, []);
if (!isReady) {
isReady = true;
attempt(function () {
prepare(v);
});
}
if (each) {
each(v, self);
}
return v;
});
}

// performance.now starts when Date does, so the two clocks of a page agree.
function origins(win) {
var P = win.Performance.prototype;
accessor(P, "timeOrigin", function (get, self) {
Reflect.apply(get, self, []);
return a.date;
});
wrap(P, "toJSON", function (f, self, args) {
var v = Reflect.apply(f, self, args);
v.timeOrigin = a.date;
if (v.timing) {
v.timing = self.timing.toJSON();
}
return v;
});
if (!win.PerformanceTiming) {
return;
}
first(P, "timing", function () {
var T = win.PerformanceTiming.prototype;
var start = Object.getOwnPropertyDescriptor(T, "navigationStart").get;
var moved = function (v, timing) {
return v > 0 ? v - Reflect.apply(start, timing, []) + a.date : v;
};
Object.getOwnPropertyNames(T).forEach(function (k) {
if (Object.getOwnPropertyDescriptor(T, k).get) {
accessor(T, k, function (get, self) {
return moved(Reflect.apply(get, self, []), self);
});
}
});
wrap(T, "toJSON", function (f, self, args) {
var v = Reflect.apply(f, self, args);
Object.keys(v).forEach(function (k) {
v[k] = moved(v[k], self);
});
return v;
});
});
}

// Chromium's estimates of the network change from load to load. These are those of a fast network.
function connection(win) {
var N = win.NetworkInformation;
if (!N) {
return;
}
first((win.Navigator || win.WorkerNavigator).prototype, "connection", function (c) {
var fixed = {effectiveType: "4g", rtt: 50, downlink: 10};
Object.keys(fixed).forEach(function (k) {
accessor(N.prototype, k, function (get, self) {
Reflect.apply(get, self, []);
return fixed[k];
});
});
c.addEventListener("change", function (e) {
e.stopImmediatePropagation();
});
});
}

// Under Trusted Types, a text that a policy of the page has trusted stays trusted when the script is put into it: it is
// trusted again by the page's own policy, so that no policy of ours is needed, which the page's CSP would refuse.
var trusts = new WeakMap();
function trusted(win) {
var own = {};
var passes = false;
var kinds = {createHTML: win.TrustedHTML, createScriptURL: win.TrustedScriptURL};
if (win.TrustedTypePolicyFactory) {
wrap(win.TrustedTypePolicyFactory.prototype, "createPolicy", function (f, self, args) {
var rules = args[1] || {};
var held = Object.create(rules);
Object.keys(kinds).forEach(function (name) {
held[name] = function (text) {
if (passes) {
return text;
}
if (typeof rules[name] !== "function") {
throw new win.TypeError("Policy " + args[0] + "'s TrustedTypePolicyOptions did not specify a '" + name + "' member.");
}
return Reflect.apply(rules[name], rules, arguments);
};
});
var policy = Reflect.apply(f, self, [args[0], held]);
Object.keys(kinds).forEach(function (name) {
own[name] = policy;
});
return policy;
});
}
return {
is: function (value) {
return Object.keys(kinds).some(function (name) {
return kinds[name] && value instanceof kinds[name];
});
},
again: function (value, text) {
var made = text;
Object.keys(kinds).forEach(function (name) {
if (kinds[name] && value instanceof kinds[name]) {
made = value;
if (own[name] && text !== String(value)) {
passes = true;
try {
made = own[name][name](text);
} finally {
passes = false;
}
}
}
});
return made;
}
};
}

// Workers made from blobs and data URLs never pass the box.
function workers(win, seeds) {
var U = win.URL;
if (!U || !U.createObjectURL) {
return;
}
var create = U.createObjectURL;
var B = win.Blob;
var blobs = new Map();
var heads = new WeakMap();
wrap(U, "createObjectURL", function (f, self, args) {
var url = Reflect.apply(f, self, args);
if (args[0] instanceof B && blobs.size < 10000) {
blobs.set(url, args[0]);
}
return url;
});
wrap(U, "revokeObjectURL", function (f, self, args) {
blobs.delete(String(args[0]));
return Reflect.apply(f, self, args);
});
var made = function (parts, type) {
return Reflect.apply(create, U, [new B(parts, {type: type})]);
};
var seeded = function (url) {
var text = String(url);
if (blobs.has(text)) {
var b = blobs.get(text);
return made([ofWorkers, b], b.type || "text/javascript");
}
var data = /^data:([^,]*?)(;base64)?,/i.exec(text);
if (!data) {
return url;
}
var body = text.slice(data[0].length);
return data[2] ? data[0] + win.btoa(ofWorkers + win.atob(decodeURIComponent(body))) : data[0] + encodeURIComponent(ofWorkers) + body;
};
["Worker", "SharedWorker"].forEach(function (kind) {
if (!win[kind]) {
return;
}
constructor(win, kind, function (t, args, nt) {
var changed = args;
var trust = trusts.get(win);
if (typeof args[0] === "string" || args[0] instanceof U || trust.is(args[0])) {
changed = args.slice();
attempt(function () {
changed[0] = trust.again(args[0], seeded(args[0]));
});
}
return Reflect.construct(t, changed, nt);
});
});
if (win.Worklet) {
change(win.Worklet.prototype, "addModule", function (args) {
args[0] = seeded(args[0]);
});
}
if (!win.document) {
return;
}
// The start of a blob of HTML tells where its script goes, and cannot be read later without waiting.
constructor(win, "Blob", function (t, args, nt) {
var b = Reflect.construct(t, args, nt);
attempt(function () {
var first = /html/.test(b.type) && args[0] && args[0][0];
if (typeof first === "string") {
heads.set(b, {text: first.slice(0, 4096), charset: "utf-8"});
} else if (first instanceof B && heads.has(first)) {
heads.set(b, heads.get(first));
} else if (first && first.byteLength) {
var view = new Uint8Array(first.buffer || first, first.byteOffset || 0, Math.min(first.byteLength, 4096));
heads.set(b, {text: String.fromCharCode.apply(null, view)});
}
});
return b;
});
seeds.frame = function (url) {
if (typeof url !== "string" && !(url instanceof U)) {
return "";
}
var text = String(url).trim();
var b = blobs.get(text);
if (b && /^text\/html/.test(b.type)) {
var head = heads.get(b) || {text: ""};
var start = placed.exec(head.text)[0];
start = head.charset ? new win.TextEncoder().encode(start).length : start.length;
return made([heads.has(b) ? b.slice(0, start) : "<!doctype html>", homed, b.slice(start)], typed(b.type, head.charset || declared(head.text)));
}
return seededData(win, text);
};
}

// madeByWorker puts the script into documents and workers that a service worker answers from a cache, where they are as
// a script fetched them, or writes itself. Under a policy it would be refused.
function madeByWorker(win) {
if (!win.FetchEvent || !win.TransformStream) {
return;
}
wrap(win.FetchEvent.prototype, "respondWith", function (f, self, args) {
var isDocument = self.request.mode === "navigate";
if (args.length && (isDocument || /work(er|let)$/.test(self.request.destination))) {
args = [win.Promise.resolve(args[0]).then(function (r) {
return answerSeeded(win, r, isDocument);
})];
}
return Reflect.apply(f, self, args);
});
}

function answerSeeded(win, r, isDocument) {
if (!(r instanceof win.Response)) {
return r;
}
var type = r.headers.get("content-type") || "";
if (!r.ok || !r.body || r.bodyUsed || r.redirected || isDocument && (!/^text\/html/i.test(type) || r.headers.has("content-security-policy"))) {
return r;
}
var copy = r.clone().body.getReader();
var begin = "";
// A browser, too, waits for 1024 bytes where no header says the charset.
var look = function () {
return copy.read().then(function (got) {
begin += got.done ? "" : String.fromCharCode.apply(null, got.value.subarray(0, 4096));
var isKnown = /charset=/i.test(type) || /charset=[^>]*>/i.test(begin);
return got.done || !isDocument || begin.length >= 1024 || isKnown && headBegins.test(begin.slice(placed.exec(begin)[0].length)) ? begin : look();
});
};
return look().then(function () {
copy.cancel();
if (!begin || /function eidetic\(a\)|^(\xfe\xff|\xff\xfe)/.test(begin)) {
return r;
}
var left = isDocument ? placed.exec(begin)[0].length : 0;
var headers = new win.Headers(r.headers);
headers.delete("content-length");
if (isDocument) {
headers.set("content-type", typed(type, declared(begin.slice(0, 1024))));
}
var body = r.body.pipeThrough(new win.TransformStream({transform: function (bytes, to) {
if (left >= 0 && bytes.length >= left) {
to.enqueue(bytes.subarray(0, left));
to.enqueue(new win.TextEncoder().encode(isDocument ? tag : ofWorkers));
bytes = bytes.subarray(left);
left = -1;
}
left -= left < 0 ? 0 : bytes.length;
to.enqueue(bytes);
}}));
return new win.Response(body, {status: r.status, statusText: r.statusText, headers: headers});
}, function () {
return r;
});
}

// headBegins tells that what was placed is complete: a text follows, or a tag that is neither doctype nor comment.
var headBegins = /^\s*(?:[^<\s]|<(?![!])[^>]*>)/;

// placed finds where the script goes in a document: after comments, doctype, <html> and <head>.
var placed = /^(?:\s|<[!]--[\s\S]*?-->|<!doctype[^>]*>)*(?:<html(?:\s[^>]*)?>)?\s*(?:<head(?:\s[^>]*)?>)?/i;
var tag = "<scr" + "ipt>" + source + "</scr" + "ipt>";
var homed = tag.replace(">", " data-home=\"" + escaped(a.home || "") + "\">");

function declared(head) {
var m = /<meta[^>]+charset\s*=\s*["']?([\w:.-]+)/i.exec(head);
return m ? m[1] : "";
}

// typed adds a charset to a type that names none: the script moves a <meta> out of its place.
function typed(type, charset) {
return charset && !/;\s*charset=/i.test(type) ? type + ";charset=" + charset : type;
}

// seededData puts the script into a document that is a data URL, and returns "" for another URL.
function seededData(win, url) {
var m = /^data:(text\/html(?:;(?!\s*base64\s*,)[^,;]*)*)(;\s*base64\s*)?,([^#]*)(#[\s\S]*)?$/i.exec(url.replace(/[\t\r\n]/g, ""));
if (!m) {
return "";
}
var body = m[3].replace(/[^\x00-\x7f]+/g, encodeURIComponent).replace(/%([0-9a-f]{2})/gi, function (all, hex) {
return String.fromCharCode(parseInt(hex, 16));
});
if (m[2]) {
body = win.atob(body);
}
var at = placed.exec(body)[0].length;
return "data:" + typed(m[1], declared(body.slice(0, 1024))) + ";base64," + win.btoa(body.slice(0, at) + homed + body.slice(at)) + (m[4] || "");
}

function escaped(text) {
return text.replace(/&/g, "&amp;").replace(/"/g, "&#34;").replace(/'/g, "&#39;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

// revealed is an attribute's value with its references decoded, and where each character came from.
function revealed(text) {
var out = "";
var from = [];
var known = {amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'"};
var exact = true;
var reference = /&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|([a-z][a-z0-9]*));/iy;
for (var i = 0; i < text.length;) {
from.push(i);
reference.lastIndex = i;
var m = text[i] === "&" ? reference.exec(text) : null;
if (!m) {
exact = exact && text[i] !== "&";
out += text[i++];
continue;
}
var code = m[1] ? parseInt(m[1], 16) : +m[2];
exact = exact && (m[3] ? m[3] in known : code < 65536);
out += m[3] ? known[m[3]] || "\ufffd" : code < 65536 ? String.fromCharCode(code) : "\ufffd";
i += m[0].length;
}
from.push(text.length);
return {text: out, from: from, exact: exact};
}

// edits lists the changes to a document, or to markup, that seed it and the frames in it.
function edits(win, text, isDocument, depth) {
var list = [];
if (isDocument) {
var at = placed.exec(text)[0].length;
list.push([at, at, tag]);
}
if (depth > 4 || !/<iframe/i.test(text)) {
return list;
}
var tags = /<[!]--[\s\S]*?-->|<(script|style|textarea|title|xmp|noscript)\b[\s\S]*?<\/\1\s*>|(<iframe)(?=[\s\/])((?:[^>"']|"[^"]*"|'[^']*')*)/gi;
for (var t = tags.exec(text); t; t = tags.exec(text)) {
if (t[2]) {
var begin = t.index + t[2].length;
frame(t[3]).forEach(function (e) {
list.push([begin + e[0], begin + e[1], e[2]]);
});
}
}
return list;

function frame(attributes) {
var found = {};
var each = /([^\s"'>\/=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
for (var m = each.exec(attributes); m; m = each.exec(attributes)) {
var value = m[2] === undefined ? m[3] : m[2];
found[m[1].toLowerCase()] = {value: value, at: m.index + m[0].length - 1 - value.length};
}
var doc = found.srcdoc || found.src;
if (!doc) {
return [];
}
var inner = revealed(doc.value);
if (doc === found.srcdoc) {
return edits(win, inner.text, true, depth + 1).map(function (e) {
return [doc.at + inner.from[e[0]], doc.at + inner.from[e[1]], escaped(e[2])];
});
}
var url = inner.exact ? seededData(win, inner.text.trim()) : "";
return url ? [[doc.at, doc.at + doc.value.length, escaped(url)]] : [];
}
}

function edited(win, text, isDocument) {
var trust = trusts.get(win);
if (trust && trust.is(text)) {
return trust.again(text, edited(win, String(text), isDocument));
}
if (typeof text !== "string" || !isDocument && !/<iframe/i.test(text)) {
return text;
}
var out = "";
var done = 0;
edits(win, text, isDocument, 0).forEach(function (e) {
out += text.slice(done, e[0]) + e[2];
done = e[1];
});
return out + text.slice(done);
}

// bared takes the script out of a document in an attribute, and out of those in it.
function bared(text) {
var form = tag;
for (var depth = 0; depth < 4; depth++) {
text = text.split(form).join("");
form = escaped(form);
}
return text;
}

// cleared takes the script out of markup that is read back. Browsers differ in what they escape in an attribute.
function cleared(html) {
return html.indexOf("srcdoc=") < 0 ? html : html.split(serialised(tag)).join("").split(serialised(tag).replace(/</g, "&lt;").replace(/>/g, "&gt;")).join("");
}

function serialised(text) {
return text.replace(/&/g, "&amp;").replace(/"/g, "&quot;");
}

// Frames without a document of their own on the network.
function frames(win, seeds) {
var proto = win.HTMLIFrameElement.prototype;
["contentWindow", "contentDocument"].forEach(function (name) {
accessor(proto, name, function (get, self) {
var got = Reflect.apply(get, self, []);
attempt(function () {
var inner = got && (got.defaultView || got);
if (inner && (inner.location.protocol === "about:" || inner.location.protocol === "blob:")) {
install(inner, nameless(inner));
}
});
return got;
});
});
// What was put into an attribute is what is read from it.
var given = new WeakMap();
var rewritten = {srcdoc: function (v) {
return edited(win, v, true);
}, src: function (v) {
return seeds.elsewhere && seeds.elsewhere(v) ? "about:blank" : seeds.frame(v);
}};
var put = function (self, name, v) {
var made = v;
attempt(function () {
made = rewritten[name](v) || v;
});
if (made !== v) {
var all = given.get(self) || {};
all[name] = {made: made, given: String(v)};
given.set(self, all);
}
return made;
};
var taken = function (self, name, got) {
var all = given.get(self);
return all && all[name] && all[name].made === got ? all[name].given : name === "srcdoc" && got ? bared(got) : got;
};
["src", "srcdoc"].forEach(function (name) {
accessor(proto, name, function (get, self) {
return taken(self, name, Reflect.apply(get, self, []));
}, function (set, self, args) {
return Reflect.apply(set, self, [put(self, name, args[0])]);
});
});
// These are set on frames alone: elements of other kinds must not pay for them.
var own = function (name, f) {
Object.defineProperty(proto, name, {writable: true, configurable: true, enumerable: true, value: stand(win.Element.prototype[name], f)});
};
own("setAttribute", function (f, self, args) {
var name = String(args[0]).toLowerCase();
return Reflect.apply(f, self, args.length > 1 && name in rewritten ? [name, put(self, name, args[1])] : args);
});
own("getAttribute", function (f, self, args) {
return taken(self, String(args[0]).toLowerCase(), Reflect.apply(f, self, args));
});

// In markup that scripts make, the script goes first: a doctype has no effect in srcdoc.
["write", "writeln"].forEach(function (name) {
change(win.Document.prototype, name, function (args) {
args.forEach(function (html, i) {
args[i] = edited(win, html, false);
});
});
});
change(win.Element.prototype, "insertAdjacentHTML", function (args) {
args[1] = edited(win, args[1], false);
});
change(win.Range.prototype, "createContextualFragment", function (args) {
args[0] = edited(win, args[0], false);
});
[[win.Element, "innerHTML"], [win.Element, "outerHTML"], [win.ShadowRoot, "innerHTML"]].forEach(function (p) {
accessor(p[0].prototype, p[1], function (get, self) {
return cleared(Reflect.apply(get, self, []));
}, function (set, self, args) {
return Reflect.apply(set, self, [edited(win, args[0], false)]);
});
});
}

// A frame whose document is not from the network is named by its place, and those of the frames around it.
function nameless(win) {
var name = "frame";
attempt(function () {
for (var depth = 0; win !== win.parent && depth < 20; depth++) {
var up = win.parent;
for (var i = 0; i < up.length && i < 1000; i++) {
if (up[i] === win) {
name += " " + i;
}
}
win = up;
}
});
return name;
}

// laboratory is what a page, its frames and its workers have of the box. Worklets have none: they reach no network, and
// the port of an audio worklet's node is the page's, which would get our notes, or have its messages too early.
function laboratory(win, name) {
if (win.lab || !win.fetch || !win.performance) {
return;
}
var where = "";
if (!win.document) {
where = (win.clients ? "service worker " : win.onconnect === null ? "shared worker " : "worker ") + (win.name || name.replace(/ worker$/, ""));
} else if (win.top !== win) {
where = /^frame/.test(name) ? name : "frame " + name;
}
var send = win.fetch;
var lab = {done: function (name) {
return send.call(win, box + "done", {method: "POST", mode: "no-cors", keepalive: true, credentials: "omit",
body: JSON.stringify({name: name === undefined ? "" : String(name).slice(0, 1000), at_ms: win.performance.now()})});
}};
var tell = annotations(win, lab, send, where.slice(0, 100));
Object.defineProperty(win, "lab", {value: lab, writable: true, configurable: true, enumerable: false});
return tell;
}

// annotations adds to lab what puts notes onto a trial's timeline. They are sent a few at a time, with the page's
// clock and when the box's last answer came, by which the box joins the two clocks.
function annotations(win, lab, send, where) {
var now = win.performance.now.bind(win.performance);
var later = win.setTimeout;
var doc = win.location.href.slice(0, 200) + " " + now() + " " + win[mark].lot;
var queue = [];
var heard = [];
var told = 0;
var posts = 0;
var pings = 2;
var waits = false;
var flush = function () {
waits = false;
var n = ++posts;
var list = [];
var size = 0;
while (queue.length && (size += 3 * queue[0].length) < 60000) {
list.push(queue.shift());
}
var body = "{\"doc\":" + JSON.stringify(doc) + ",\"where\":" + JSON.stringify(where) + ",\"origin_ms\":" + +win[mark].origin + ",\"n\":" + n + ",\"heard\":" + JSON.stringify(heard.splice(0)) + ",\"list\":[" + list.join(",") + "],\"sent_ms\":" + now() + "}";
send.call(win, box + "annotations", {method: "POST", mode: "no-cors", keepalive: size < 12000, credentials: "omit", body: body}).then(function () {
heard.push([n, now()]);
if (pings-- > 0) {
soon();
}
}, function () {});
if (queue.length) {
soon();
}
};
var soon = function () {
if (!waits) {
waits = true;
later.call(win, flush, 100);
}
};
var tell = function (op, text, o, at) {
at = at === undefined ? now() : at;
if (++told > 10000) {
if (told > 10001) {
return;
}
op = "mark";
text = "what is noted from here on is left out: 10,000 notes of one page, frame or worker are kept";
}
if (told === 1) {
var last = function () {
if (queue.length) {
flush();
}
};
win.addEventListener("pagehide", last);
// A worker that ends itself has no such event.
if (!win.document && win.close && win.XMLHttpRequest) {
var X = win.XMLHttpRequest;
attempt(function () {
change(win, "close", function () {
send = function (address, o) {
var x = new X();
x.open("POST", address, false);
x.send(o.body);
return win.Promise.resolve();
};
last();
});
});
}
}
o = typeof o === "object" && o && !Array.isArray(o) ? o : {colour: o};
queue.push(JSON.stringify({op: op, text: text === undefined || text === null ? "" : String(text).slice(0, 4096), group: o.group === undefined ? "" : String(o.group).slice(0, 100), colour: shade(o.colour || o.color), key: o.key === undefined ? undefined : String(o.key).slice(0, 60), bytes: o.bytes > 0 ? Math.round(o.bytes) : undefined, page_ms: at}));
soon();
};
["mark", "begin", "end", "pause", "resume", "send", "receive"].forEach(function (op) {
lab[op] = function (text, o) {
tell(op, text, o);
};
});
lab.annotate = function (text, o) {
tell("set", text, o);
};
if (!win.Gator) {
Object.defineProperty(win, "Gator", {value: {annotate: function (text, colour) {
tell("set", text, {group: "Gator", colour: colour});
}}, writable: true, configurable: true, enumerable: false});
}
return tell;
}

// shade is a colour as #rrggbb: from that, from 0xrrggbb, [r, g, b] or rgb(r, g, b).
function shade(c) {
var list = Array.isArray(c) ? c : typeof c === "string" ? (/^rgb\((.*)\)$/.exec(c) || ["", ""])[1].split(",") : [];
if (list.length === 3) {
c = (list[0] & 255) << 16 | (list[1] & 255) << 8 | list[2] & 255;
}
return typeof c === "number" ? "#" + (c & 16777215 | 16777216).toString(16).slice(1) : typeof c === "string" ? c.slice(0, 7) : "";
}

var root = globalThis;
var place = root.location ? root.location : {protocol: "worklet:"};
var name = place.protocol === "http:" || place.protocol === "https:" ? place.origin + place.pathname : root.document ? nameless(root) : place.protocol;
var script = root.document && root.document.currentScript;
install(root, name + (root.document ? "" : " worker"), script ? +script.getAttribute("data-modified") : 0);

if (root.document) {
if (script) {
script.remove();
}
}
})
