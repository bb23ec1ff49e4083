// What a page, its frames and its workers say to each other and to servers, for the timeline: each message is told with
// its size. script.go puts this into install in script.js, so that every realm that gets the one gets the other.
// tell is what lab's functions call. A page sees what it would see without it: what it passes is looked at when the
// browser has taken it, never by its own accessors, and converted by nobody but the browser.
attempt(function () {
if (tell) {
messages(win);
}
});

function messages(win) {
var left = 4000;
var described = Object.getOwnPropertyDescriptor;
var keysOf = Object.keys;
var parent = Object.getPrototypeOf;
var listen = win.EventTarget.prototype.addEventListener;
var now = win.performance.now.bind(win.performance);

// reader reads an attribute as the browser does. What it returns for an object of another kind is undefined.
function reader(proto, name) {
var d = proto && described(proto, name);
return function (self) {
try {
return Reflect.apply(d.get, self, []);
} catch (e) {
return undefined;
}
};
}
var of = function (kind) {
return win[kind] && win[kind].prototype;
};
var ofMessage = reader(of("MessageEvent"), "data");
var ofServed = reader(of("ExtendableMessageEvent"), "data");
// A service worker's own messages are events of another kind.
var dataOf = function (e) {
var data = ofMessage(e);
return data === undefined ? ofServed(e) : data;
};
var sourceOf = reader(of("MessageEvent"), "source");
var originOf = reader(of("MessageEvent"), "origin");
var handlerOf = reader(of("MessagePort"), "onmessage");
var stateOf = reader(of("RTCPeerConnection"), "signalingState");
var labelOf = reader(of("RTCDataChannel"), "label");
var channelOf = reader(of("RTCDataChannelEvent"), "channel");
var hostOf = reader(of("URL"), "host");
var URL = win.URL;
var views = [reader(parent(win.Uint8Array.prototype), "byteLength"), reader(of("DataView"), "byteLength")];
var binaries = [["ArrayBuffer", "byteLength"], ["SharedArrayBuffer", "byteLength"], ["Blob", "size"]].map(function (b) {
return reader(of(b[0]), b[1]);
});
var isView = win.ArrayBuffer.isView;
var plain = [win.Object.prototype, win.Array.prototype, null];

// binary is the size of a buffer, a view of one, or a blob; undefined of anything else.
function binary(v) {
var readers = isView(v) ? views : binaries;
for (var i = 0; i < readers.length; i++) {
var n = readers[i](v);
if (n !== undefined) {
return n;
}
}
}

// weigh is the size of a value in bytes, about, and a key that its copy has too. It looks at no more than 200 parts,
// and into objects only if they are copied: others the browser makes a text of.
function weigh(value, copied) {
var bytes = 0;
var h = 2166136261;
var parts = 0;
var add = function (text) {
for (var i = 0; i < text.length && i < 100; i++) {
h = Math.imul(h ^ text.charCodeAt(i), 16777619);
}
};
var walk = function (v, depth) {
if (++parts > 200) {
return;
}
if (typeof v === "string") {
bytes += v.length;
add("s" + v.length + v);
return;
}
if (typeof v === "function" || typeof v === "symbol") {
return;
}
if (typeof v !== "object" || v === null) {
bytes += 8;
add(typeof v + v);
return;
}
var isArray = Array.isArray(v);
var size = copied && plain.indexOf(parent(v)) >= 0 ? undefined : binary(v);
if (size !== undefined) {
bytes += size;
add("b" + size);
return;
}
if (!copied || depth >= 6) {
return;
}
var names = isArray ? [] : keysOf(v);
var n = isArray ? v.length : names.length;
add((isArray ? "a" : "o") + n);
for (var i = 0; i < n && i < 100; i++) {
var k = isArray ? "" + i : names[i];
var d = described(v, k);
bytes += k.length;
add(k);
if (d && "value" in d) {
walk(d.value, depth + 1);
}
}
};
try {
walk(value, 0);
} catch (e) {
h = 0;
}
return {group: "messages", bytes: bytes, key: (h >>> 0).toString(36) + "-" + bytes};
}

// told keeps to the bound, and is silent beyond it.
function told(op, text, weight, at) {
if (left-- > 0) {
tell(op, text, weight(), at);
} else if (left === -1) {
tell("mark", "further messages are left out: 4,000 of one page, frame or worker are kept", {group: "messages"}, at);
}
}

// on hears what the browser tells a target, not what the page dispatches itself.
function on(target, kind, f) {
Reflect.apply(listen, target, [kind, function (e) {
if (e.isTrusted) {
attempt(function () {
f(e);
});
}
}]);
}

// arrives tells a message that came, and sent one that the browser took from a method.
function arrives(op, text, e, copied) {
told(op, text, function () {
return weigh(dataOf(e), copied);
}, now());
}
function sent(kind, name, op, text, copied) {
var d = of(kind) && described(of(kind), name);
if (d && typeof d.value === "function") {
wrap(of(kind), name, sending(op, text, copied));
}
}
// What is transferred cannot be weighed when it has left, so a message with more than itself is weighed before.
function sending(op, text, copied) {
return function (f, self, args) {
var at = now();
var early = copied && args.length > 1 && left > 0 ? weigh(args[0], copied) : null;
var got = Reflect.apply(f, self, args);
attempt(function () {
told(op, text(self), function () {
return early || weigh(args[0], copied);
}, at);
});
return got;
};
}
function always(text) {
return function () {
return text;
};
}

var known = new WeakSet();
// hears tells the messages that arrive at an object, once.
function hears(target, text) {
if (!known.has(target)) {
known.add(target);
on(target, "message", function (e) {
arrives("receive", text, e, true);
});
}
}

// made calls f with each object that a constructor makes.
function made(kind, f) {
if (typeof win[kind] !== "function") {
return;
}
constructor(win, kind, function (t, args, nt) {
var one = Reflect.construct(t, args, nt);
attempt(function () {
f(one);
});
return one;
});
}

// Between documents, workers and ports.
made("Worker", function (w) {
hears(w, "postMessage");
});
made("BroadcastChannel", function (c) {
hears(c, "broadcast");
});
["Worker", "MessagePort", "ServiceWorker", "Client"].forEach(function (kind) {
sent(kind, "postMessage", "send", always("postMessage"), true);
});
sent("BroadcastChannel", "postMessage", "send", always("broadcast"), true);
function ofPort(port) {
if (handlerOf(port) !== undefined) {
hears(port, "postMessage");
}
}
if (of("MessagePort")) {
wrap(of("MessagePort"), "start", function (f, self, args) {
attempt(function () {
ofPort(self);
});
return Reflect.apply(f, self, args);
});
accessor(of("MessagePort"), "onmessage", null, function (set, self, args) {
attempt(function () {
ofPort(self);
});
return Reflect.apply(set, self, args);
});
}
if (!win.document) {
if (described(win, "postMessage")) {
wrap(win, "postMessage", sending("send", always("postMessage"), true));
}
hears(win, "postMessage");
} else {
// A window's postMessage must be called by the sender's own code, or the receiver would see another source: only the
// arrival is known.
var around = win.parent;
on(win, "message", function (e) {
var source = sourceOf(e);
var from = source === win ? "itself" : source === around ? "the page around it" : "another window";
arrives("mark", "postMessage from " + from + ", " + (originOf(e) || "no origin"), e, true);
});
// A document without an origin is refused it.
attempt(function () {
if (win.navigator.serviceWorker) {
hears(win.navigator.serviceWorker, "postMessage");
}
});
}

// With servers and other devices.
function hostFrom(read) {
return function (self) {
return hostOf(new URL(read(self)));
};
}
var socketHost = hostFrom(reader(of("WebSocket"), "url"));
var streamHost = hostFrom(reader(of("EventSource"), "url"));
made("WebSocket", function (s) {
on(s, "message", function (e) {
arrives("mark", "WebSocket from " + socketHost(s), e);
});
});
sent("WebSocket", "send", "mark", function (self) {
return "WebSocket to " + socketHost(self);
});
var streams = new WeakMap();
made("EventSource", function (s) {
streams.set(s, {});
on(s, "message", function (e) {
arrives("mark", "event from " + streamHost(s), e);
});
});
wrap(win.EventTarget.prototype, "addEventListener", function (f, self, args) {
var kind = args[0];
if (kind === "message" && self !== undefined && self !== win) {
attempt(function () {
ofPort(self);
});
}
var heard = typeof kind === "string" && streams.get(self);
if (heard && !/^(message|open|error)$/.test(kind) && !heard["$" + kind]) {
heard["$" + kind] = true;
on(self, kind, function (e) {
arrives("mark", "event " + kind.slice(0, 40) + " from " + streamHost(self), e);
});
}
return Reflect.apply(f, self, args);
});
function channel(c) {
if (!known.has(c)) {
known.add(c);
on(c, "message", function (e) {
arrives("receive", "data channel " + labelOf(c).slice(0, 40), e);
});
}
}
sent("RTCDataChannel", "send", "send", function (self) {
return "data channel " + labelOf(self).slice(0, 40);
});
if (of("RTCPeerConnection")) {
wrap(of("RTCPeerConnection"), "createDataChannel", function (f, self, args) {
var c = Reflect.apply(f, self, args);
attempt(function () {
channel(c);
});
return c;
});
// No connection has channels of the other side before it has this.
wrap(of("RTCPeerConnection"), "setRemoteDescription", function (f, self, args) {
attempt(function () {
if (stateOf(self) !== undefined && !known.has(self)) {
known.add(self);
on(self, "datachannel", function (e) {
channel(channelOf(e));
});
}
});
return Reflect.apply(f, self, args);
});
}
}
