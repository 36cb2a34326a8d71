// Follows the answers of a query, and goes on where it was cut:
//
//     MOTELOOM_TOKEN=… node follow.mjs http://127.0.0.1:8137 1 [COUNT]
//
// Prints each update as one line of JSON. A page of a browser has EventSource, which resumes in the same way by itself.

const [url, query, count = "Infinity"] = process.argv.slice(2);
let last = null;
let left = Number(count);

async function follow(stop) {
  const headers = { accept: "text/event-stream", authorization: `Bearer ${process.env.MOTELOOM_TOKEN}` };
  if (last !== null) headers["last-event-id"] = last;
  const answer = await fetch(`${url}/v1/queries/${query}/results`, { headers, signal: stop.signal });
  if (!answer.ok) throw new Error((await answer.json()).title);
  let text = "";
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end; left > 0 && (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const fields = text.slice(0, end).split("\n").map((line) => line.split(/: (.*)/s));
      const event = Object.fromEntries(fields);
      if (event.event === "problem") throw new Error(JSON.parse(event.data).title);
      if (event.id === undefined) continue; // a comment that keeps the connection open
      last = event.id;
      left -= 1;
      console.log(event.data);
    }
    if (left <= 0) stop.abort();
  }
}

while (left > 0) {
  const stop = new AbortController();
  try {
    await follow(stop);
  } catch (why) {
    const isCut = why instanceof TypeError || why.name === "AbortError" || why.code === "UND_ERR_SOCKET";
    if (!isCut) {
      console.error(why.message);
      process.exitCode = 1;
      break;
    }
  }
  if (left > 0) await new Promise((resolve) => setTimeout(resolve, 100));
}
