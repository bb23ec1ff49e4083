package conformance

import (
	"net/http"

	"github.com/coder/websocket"

	"eidetic/netlab/inject"
)

// answering is a WebSocket on which each message comes back.
func answering(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		kind, data, err := c.Read(r.Context())
		if err != nil || c.Write(r.Context(), kind, data) != nil {
			return
		}
	}
}

// messages are the cases of what pages say to others and to servers.
func messages() []kase {
	const once = `const once=(t,k)=>new Promise(d=>t.addEventListener(k,d,{once:true}));`
	return []kase{
		{
			name: "messages are told without a trace", inject: inject.Options{Messages: true}, timing: recorded, want: `"getter"`,
			page: `<script>(async()=>{` + once + unseen + `})().catch(e=>window.result="error "+e)</script>`,
			routes: map[string]http.HandlerFunc{
				"/socket": answering, "/events": text("text/event-stream", "data: 1\n\n"), "/w.js": text(js, "onmessage=e=>postMessage(1)"),
			},
			told: []string{
				": mark=WebSocket from a.test (1)", ": mark=WebSocket from a.test (4)", ": mark=WebSocket from a.test (7)", ": mark=WebSocket to a.test",
				": mark=WebSocket to a.test (4)", ": mark=WebSocket to a.test (8)", ": mark=event from a.test (1)",
				": mark=postMessage from another window, https://a.test (5)", ": receive=postMessage (305)", ": receive=postMessage (32) that nobody sent",
				": receive=postMessage (8)", ": send=postMessage (16)", ": send=postMessage (305)", ": send=postMessage (8)",
				"worker https://a.test/w.js: receive=postMessage (32) that nobody sent", "worker https://a.test/w.js: send=postMessage (8)",
			},
		},
		{
			name: "messages of sockets, frames and workers that are served reach the box", inject: inject.Options{Messages: true}, timing: recorded,
			want: "5,600,served,shared",
			page: `<script>(async()=>{` + once + `const s=new WebSocket("wss://"+location.host+"/socket");s.binaryType="arraybuffer";await once(s,"open");` +
				`s.send("hello");const a=(await once(s,"message")).data.length;s.send(new Uint16Array(300));const b=(await once(s,"message")).data.byteLength;s.close();` +
				`const says=n=>"<script>new BroadcastChannel('frames').postMessage('"+n+"')</"+"script>";const ch=new BroadcastChannel("frames");` +
				`const frame=()=>document.body.appendChild(document.createElement("iframe"));let f=frame();new f.contentWindow.BroadcastChannel("frames").postMessage("blank");await once(ch,"message");` +
				`f=frame();f.srcdoc=says("srcdoc");await once(ch,"message");f=frame();f.src=URL.createObjectURL(new Blob([says("of a blob")],{type:"text/html"}));await once(ch,"message");` +
				`await navigator.serviceWorker.register("/sw.js");const r=await navigator.serviceWorker.ready;r.active.postMessage("to serve");` +
				`const c=(await once(navigator.serviceWorker,"message")).data.answer;const w=new SharedWorker("/shared.js");w.port.start();w.port.postMessage("to share it");` +
				`const d=(await once(w.port,"message")).data;setTimeout(()=>window.result=[a,b,c,d].join(),700)})().catch(e=>window.result="error "+e)</script>`,
			routes: map[string]http.HandlerFunc{
				"/socket": answering, "/sw.js": text(js, `onmessage=e=>e.source.postMessage({answer:"served"})`),
				"/shared.js": text(js, `onconnect=e=>{e.ports[0].onmessage=m=>m.target.postMessage("shared")}`),
			},
			told: []string{
				": mark=WebSocket from a.test (5)", ": mark=WebSocket from a.test (600)", ": mark=WebSocket to a.test (5)",
				": mark=WebSocket to a.test (600)", ": receive=broadcast (5)", ": receive=broadcast (6)", ": receive=broadcast (9)",
				": receive=postMessage (12)", ": receive=postMessage (6)", ": send=postMessage (11)", ": send=postMessage (8)",
				"frame 0: receive=broadcast (6)", "frame 0: receive=broadcast (9)", "frame 0: send=broadcast (5)", "frame 1: receive=broadcast (9)",
				"frame 1: send=broadcast (6)", "frame 2: send=broadcast (9)", "service worker https://a.test/sw.js: receive=postMessage (8)",
				"service worker https://a.test/sw.js: send=postMessage (12)", "shared worker https://a.test/shared.js: receive=postMessage (11)",
				"shared worker https://a.test/shared.js: send=postMessage (6)",
			},
		},
		{
			name: "messages of data channels reach the box", inject: inject.Options{Messages: true}, want: "500 1000",
			page: `<script>(async()=>{` + once + `const p=new RTCPeerConnection(),q=new RTCPeerConnection();` +
				`p.onicecandidate=e=>q.addIceCandidate(e.candidate);q.onicecandidate=e=>p.addIceCandidate(e.candidate);const c=p.createDataChannel("work"),opened=once(c,"open");` +
				`q.ondatachannel=e=>{e.channel.binaryType="arraybuffer";e.channel.onmessage=m=>e.channel.send(m.data.byteLength+" "+"0".repeat(996))};` +
				`await p.setLocalDescription();await q.setRemoteDescription(p.localDescription);await q.setLocalDescription();await p.setRemoteDescription(q.localDescription);` +
				`await opened;c.send(new ArrayBuffer(500));const got=(await once(c,"message")).data;setTimeout(()=>window.result=parseInt(got)+" "+got.length,700)})()` +
				`.catch(e=>window.result="error "+e)</script>`,
			told: []string{
				": receive=data channel work (1000)", ": receive=data channel work (500)", ": send=data channel work (1000)", ": send=data channel work (500)",
			},
		},
	}
}

// unseen is a page's script that tells all that it can see of what tells its messages: the looks of functions, how often
// its own accessors, traps and conversions are called, and what is thrown.
const unseen = `
const seen=[];const spied=(name,o)=>new Proxy(o||{},new Proxy({},{get:(_,trap)=>{seen.push(name+"."+trap)}}));
const tried=(name,f)=>{try{const r=f();seen.push(name+" "+typeof r);if(r instanceof Promise)r.catch(()=>{})}catch(e){seen.push(name+" "+e.name+": "+e.message)}};
const looks=w=>[[w,"WebSocket"],[w,"EventSource"],[w,"BroadcastChannel"],[w,"Worker"],[w,"RTCPeerConnection"],[w.MessagePort.prototype,"postMessage"],[w.MessagePort.prototype,"start"],
[w.MessagePort.prototype,"onmessage","set"],[w.Worker.prototype,"postMessage"],[w.BroadcastChannel.prototype,"postMessage"],[w.EventTarget.prototype,"addEventListener"],[w.WebSocket.prototype,"send"],
[w.RTCDataChannel.prototype,"send"],[w.RTCPeerConnection.prototype,"createDataChannel"],[w.RTCPeerConnection.prototype,"setRemoteDescription"]].map(([o,k,kind])=>{
const d=Object.getOwnPropertyDescriptor(o,k),f=d[kind||"value"];return [k,Function.prototype.toString.call(f),w.Function.prototype.toString.call(f),f.name,f.length,d.enumerable,d.writable,typeof f.prototype,f.prototype&&f.prototype.constructor===f].join()});
const blank=document.body.appendChild(document.createElement("iframe"));
const blob=document.body.appendChild(document.createElement("iframe"));
blob.src=URL.createObjectURL(new Blob(["<!doctype html><script>parent.blobs=("+looks+")(window);parent.postMessage('ready','*')</"+"script>"],{type:"text/html"}));
await once(window,"message");seen.push(...looks(window),...looks(blank.contentWindow),...blobs,window.webkitRTCPeerConnection===window.RTCPeerConnection);
blank.remove();blob.remove();
for(const [k,proto] of [["data",MessageEvent.prototype],["url",WebSocket.prototype],["url",EventSource.prototype],["size",Blob.prototype],["byteLength",ArrayBuffer.prototype],["now",Performance.prototype]]){
const d=Object.getOwnPropertyDescriptor(proto,k),own=d.get?"get":"value",f=d[own];d[own]=function(){seen.push(k);return Reflect.apply(f,this,arguments)};Object.defineProperty(proto,k,d)}
const {port1:p,port2:q}=new MessageChannel();
const watched={get getter(){seen.push("getter");return 1},get byteLength(){seen.push("byteLength");return 1},toString(){seen.push("toString")}};delete watched.toString;
q.start();let came=once(q,"message");
tried("getters",()=>p.postMessage(watched));seen.push(JSON.stringify((await came).data));
tried("proxy",()=>p.postMessage(spied("data")));tried("inner proxy",()=>p.postMessage({inner:spied("inner")}));
tried("function",()=>p.postMessage(()=>1));tried("none",()=>p.postMessage());
came=once(q,"message");const bytes=new Uint8Array(300);tried("transfer",()=>p.postMessage({bytes},[bytes.buffer]));seen.push(bytes.length,(await came).data.bytes.length);
tried("list",()=>p.postMessage(1,spied("list",[])));tried("options",()=>p.postMessage(1,{get transfer(){seen.push("transfer");return []}}));
for(const [name,f] of Object.entries({post:MessagePort.prototype.postMessage,start:MessagePort.prototype.start,listen:EventTarget.prototype.addEventListener,send:WebSocket.prototype.send,
work:Worker.prototype.postMessage,cast:BroadcastChannel.prototype.postMessage,channel:RTCDataChannel.prototype.send,create:RTCPeerConnection.prototype.createDataChannel,
handler:Object.getOwnPropertyDescriptor(MessagePort.prototype,"onmessage").set}))for(const self of [{get url(){seen.push("url of another")}},spied("receiver"),window,undefined,1])
tried(name,()=>f.call(self,name==="listen"?"message":"x",()=>{}));
const kind={toString(){seen.push("kind");return "message"}};
tried("kind",()=>new EventTarget().addEventListener(kind,()=>{}));tried("kind",()=>p.addEventListener(kind,()=>{}));
const address=path=>({toString(){seen.push("address");return path}}),thing={toString(){seen.push("thing");return "a thing"},get byteLength(){seen.push("its length")}};
tried("wrong",()=>new WebSocket("nonsense:"));tried("called",()=>WebSocket("wss://a.test/"));tried("called",()=>Worker("/w.js"));
const s=new WebSocket(address("wss://"+location.host+"/socket"));tried("early",()=>s.send(thing));await once(s,"open");
for(const one of [thing,spied("sent",Object.assign(()=>1,{toString:()=>"x"})),5,null,new Blob(["blob"])]){came=once(s,"message");tried("send",()=>s.send(one));await came}
class Named extends EventSource{};const e=new Named(address("/events"));seen.push(e instanceof EventSource,e.constructor===Named);
e.addEventListener("named",()=>{});await once(e,"message");e.close();
const w=new Worker("/w.js");came=once(w,"message");tried("work",()=>w.postMessage(watched));await came;
dispatchEvent(new MessageEvent("message",{data:spied("made")}));p.dispatchEvent(new MessageEvent("message",{data:spied("made")}));
const peer=new RTCPeerConnection();tried("channel",()=>peer.createDataChannel({toString(){seen.push("label");return "l"}}).send(thing));
await peer.setRemoteDescription({type:"offer",sdp:"x"}).catch(e=>seen.push(e.name));peer.close();
setTimeout(()=>window.result=JSON.stringify(seen),700);`
