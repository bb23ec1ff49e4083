// Reads traces as the browser's developer tools do, and prints what they made of each: one JSON object a line.
// node accept.mjs FOLDER_OF_TRACE_ENGINE TRACE…
import {pathToFileURL} from 'node:url';

const {analyzeTrace} = await import(new URL('analyze-trace.mjs', pathToFileURL(process.argv[2] + '/')));
for (const file of process.argv.slice(3)) {
	const {parsedTrace} = await analyzeTrace(file);
	const {Meta, NetworkRequests, Renderer} = parsedTrace.data;
	console.log(JSON.stringify({
		mainFrameURL: Meta.mainFrameURL,
		insights: parsedTrace.insights.size,
		requests: NetworkRequests.byTime.length,
		processes: Renderer.processes.size,
	}));
}
