// Runs examples/web/events.mjs with the EventSource of Node.js: node --experimental-eventsource event_source.mjs EXAMPLE URL COOKIE COUNT
const [example, url, cookie, count] = process.argv.slice(2);
const { follow } = await import(example);
await fetch("data:,"); // makes the dispatcher
const dispatcher = Symbol.for("undici.globalDispatcher.1");
globalThis[dispatcher] = globalThis[dispatcher].compose((dispatch) => (options, handler) => {
  const headers = { ...options.headers, cookie }; // as a browser adds it
  return dispatch({ ...options, headers }, handler);
});
let left = Number(count);
const alive = setInterval(() => {}, 1_000); // Node.js does not wait for an EventSource that is about to connect again
const source = follow(
  url,
  (update, id) => {
    if (left <= 0) return;
    left -= 1;
    console.log(JSON.stringify({ number: update.number, id }));
    if (left === 0) {
      source.close();
      clearInterval(alive);
    }
  },
  (problem) => {
    console.error(problem.title);
    clearInterval(alive);
    process.exitCode = 1;
  },
);
