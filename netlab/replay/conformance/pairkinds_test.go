package conformance

// kindPages are pages with documents of other kinds than HTML, and with HTML that is no document.
func kindPages() (pages []*oddPage) {
	const seeded = `parent.seed&&parent.seed(location.pathname,Math.random())`
	docs := routes{
		"/svg": asIs("image/svg+xml", `<?xml version="1.0"?><!-- <svg> --><svg xmlns="http://www.w3.org/2000/svg" width="90" height="40"><script>`+
			`document.documentElement.append("x");parent.out&amp;&amp;parent.out("svg",document.documentElement.childNodes.length);parent.seed&amp;&amp;parent.seed("svg",Math.random())</script><text y="20">svg</text></svg>`),
		"/static": asIs("image/svg+xml", `<!DOCTYPE svg [<!ENTITY c "teal">]><s:svg xmlns:s="http://www.w3.org/2000/svg" width="90" height="40"><s:rect width="60" height="30" fill="&c;"/></s:svg>`),
		"/feed":   asIs("application/xml", `<?xml version="1.0" encoding="utf-8"?><a><b>żółć</b></a>`), "/json": asIs("application/json", `{"a":[1,2,"ż"]}`),
		"/text": asIs("text/plain", "text ż"), "/img": asIs("image/png", picture),
		"/xh": asIs("application/xhtml+xml", `<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">`+
			`<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body><p>a&nbsp;b</p><script>//<![CDATA[
if(1<2)document.body.append("cdata "+document.contentType);`+seeded+`
//]]></script></body></html>`),
		"/entities": asIs("application/xhtml+xml", `<!DOCTYPE html [<!ENTITY me "entity"><!ATTLIST p class CDATA "given">]><html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head>`+
			`<body><p>&me;</p><script><![CDATA[`+seeded+`]]></script></body></html>`),
		"/prefixed": asIs("application/xhtml+xml", `<h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:head><h:title>x</h:title></h:head><h:body><h:p>prefixed</h:p><h:script><![CDATA[`+
			`document.documentElement.lastChild.append("ran");`+seeded+`]]></h:script></h:body></h:html>`),
	}
	frames := `<img src="/static?picture"><object data="/svg?object" width=200 height=60></object>`
	for _, path := range []string{"/svg", "/static", "/feed", "/json", "/text", "/img", "/xh", "/entities", "/prefixed"} {
		frames += `<iframe src="` + path + `" width=200 height=60></iframe>`
	}
	pages = append(pages, written("documents of other kinds", htmlPage("documents", "", frames), docs))

	part := `<!doctype html><html><head><title>part</title><script>self.ranAgain=(self.ranAgain||0)+1</script></head><body><p>body</p><iframe srcdoc="<p>x"></iframe></body></html>`
	for _, insecure := range []bool{false, true} {
		p := scripted("HTML that scripts fetch", `begin();(async()=>{const one=async(n,h,o)=>{const t=await (await fetch("/part?"+n,{headers:h,...o})).text();out(n,t.length+" "+t.slice(0,300))};
		await one("plain",{});await one("turbo",{Accept:"text/html, application/xhtml+xml"});await one("htmx",{"HX-Request":"true"});
		await one("jquery",{Accept:"text/html, */*; q=0.01","X-Requested-With":"XMLHttpRequest"});await one("post",{Accept:"text/html"},{method:"POST",body:"a=1"});
		const d=document.createElement("iframe");d.src="/part?frame";document.body.append(d);await new Promise(r=>d.onload=r);out("frame",d.contentDocument.head.children.length);
		seed("frame",d.contentWindow.Math.random())})().finally(end)`, routes{"/part": asIs("text/html; charset=utf-8", part)})
		p.insecure = insecure
		pages = append(pages, p)
	}
	return pages
}
