// What a page, its frames and its workers say to each other and to servers, for the timeline: each message is told by
// lab, with its size. script.go drops comment lines and joins the rest, as with script.js.
(function () {
"use strict";
var win = globalThis;
var lab = win.lab;
if (!lab || !lab.send) {
return;
}
var send = lab.send;
var receive = lab.receive;
var note = lab.mark;
var left = 4000;
var listen = win.EventTarget.prototype.addEventListener;
var on = function (target, kind, f) {
listen.call(target, kind, f);
};

// weigh is the size of a value in bytes, about, and a key that its copy has too. It looks at no more than 200 parts.
function weigh(value) {
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
} else if (typeof v !== "object" || v === null) {
bytes += 8;
add(typeof v + String(v));
} else if (v.byteLength !== undefined) {
bytes += v.byteLength;
add("b" + v.byteLength);
} else if (win.Blob && v instanceof win.Blob) {
bytes += v.size;
add("B" + v.size);
} else if (depth < 6) {
var names = Object.keys(v);
add((Array.isArray(v) ? "a" : "o") + names.length);
names.slice(0, 100).forEach(function (k) {
bytes += k.length;
add(k);
walk(v[k], depth + 1);
});
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
function told(f, text, data) {
if (left-- > 0) {
f(text, weigh(data));
} else if (left === -1) {
note("further messages are left out: 4,000 of one page, frame or worker are kept", {group: "messages"});
}
}

// before calls f before a method of an object.
function before(object, name, f) {
var old = object && Object.getOwnPropertyDescriptor(object, name);
if (!old || typeof old.value !== "function") {
return;
}
old.value = new Proxy(old.value, {apply: function (method, self, args) {
f(self, args);
return Reflect.apply(method, self, args);
}});
Object.defineProperty(object, name, old);
}

// made calls f with each object that a constructor makes.
function made(name, f) {
var old = win[name];
if (typeof old !== "function") {
return;
}
var P = new Proxy(old, {construct: function (t, args, nt) {
var one = Reflect.construct(t, args, nt === P ? t : nt);
f(one, args);
return one;
}});
old.prototype.constructor = P;
Object.defineProperty(win, name, {value: P, writable: true, configurable: true, enumerable: false});
}

var host = function (url) {
try {
return new win.URL(String(url), win.location.href).host;
} catch (e) {
return "";
}
};
var known = new WeakSet();
// hears tells the messages that arrive at an object, once.
function hears(target, text) {
if (known.has(target)) {
return;
}
known.add(target);
on(target, "message", function (e) {
told(receive, text, e.data);
});
}

// Between documents, workers and ports.
made("Worker", function (w) {
hears(w, "postMessage");
});
made("BroadcastChannel", function (c) {
hears(c, "broadcast");
});
[["Worker", "postMessage"], ["MessagePort", "postMessage"], ["ServiceWorker", "postMessage"], ["Client", "postMessage"], ["BroadcastChannel", "broadcast"]].forEach(function (kind) {
before(win[kind[0]] && win[kind[0]].prototype, "postMessage", function (self, args) {
told(send, kind[1], args[0]);
});
});
var port = win.MessagePort && win.MessagePort.prototype;
if (port) {
before(port, "start", function (self) {
hears(self, "postMessage");
});
var handler = Object.getOwnPropertyDescriptor(port, "onmessage");
if (handler && handler.set) {
handler.set = new Proxy(handler.set, {apply: function (method, self, args) {
hears(self, "postMessage");
return Reflect.apply(method, self, args);
}});
Object.defineProperty(port, "onmessage", handler);
}
}
if (!win.document) {
if (win.postMessage) {
before(win, "postMessage", function (self, args) {
told(send, "postMessage", args[0]);
});
}
hears(win, "postMessage");
} else {
// A window's postMessage must be called by the sender's own code, or the receiver would see another source: only the
// arrival is known.
on(win, "message", function (e) {
var from = e.source === win ? "itself" : e.source === win.parent ? "the page around it" : "another window";
told(note, "postMessage from " + from + ", " + (e.origin || "no origin"), e.data);
});
if (win.navigator.serviceWorker) {
hears(win.navigator.serviceWorker, "postMessage");
}
}

// With servers and other devices.
made("WebSocket", function (s, args) {
var name = "WebSocket from " + host(args[0]);
on(s, "message", function (e) {
told(note, name, e.data);
});
});
before(win.WebSocket && win.WebSocket.prototype, "send", function (self, args) {
told(note, "WebSocket to " + host(self.url), args[0]);
});
made("EventSource", function (s, args) {
known.add(s);
on(s, "message", function (e) {
told(note, "event from " + host(args[0]), e.data);
});
});
var kinds = new WeakMap();
before(win.EventTarget.prototype, "addEventListener", function (self, args) {
var kind = String(args[0]);
if (port && kind === "message" && self instanceof win.MessagePort) {
hears(self, "postMessage");
}
if (!win.EventSource || !(self instanceof win.EventSource) || /^(message|open|error)$/.test(kind)) {
return;
}
var heard = kinds.get(self) || {};
if (heard["$" + kind]) {
return;
}
heard["$" + kind] = true;
kinds.set(self, heard);
on(self, kind, function (e) {
told(note, "event " + kind.slice(0, 40) + " from " + host(self.url), e.data);
});
});
before(win.RTCDataChannel && win.RTCDataChannel.prototype, "send", function (self, args) {
told(send, "data channel " + self.label.slice(0, 40), args[0]);
});
var channel = function (c) {
if (!known.has(c)) {
known.add(c);
on(c, "message", function (e) {
told(receive, "data channel " + c.label.slice(0, 40), e.data);
});
}
};
made("RTCPeerConnection", function (p) {
on(p, "datachannel", function (e) {
channel(e.channel);
});
});
var peer = win.RTCPeerConnection && win.RTCPeerConnection.prototype;
if (peer && peer.createDataChannel) {
var create = Object.getOwnPropertyDescriptor(peer, "createDataChannel");
create.value = new Proxy(create.value, {apply: function (method, self, args) {
var c = Reflect.apply(method, self, args);
channel(c);
return c;
}});
Object.defineProperty(peer, "createDataChannel", create);
}
})();
