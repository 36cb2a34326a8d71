// Follows the answers of a query with EventSource, in a page of the station's own origin:
//
//     <script type="module">
//       import { follow } from "./events.mjs";
//       follow("/v1/queries/1/results", (update) => console.log(update.time, update.rows), (problem) => alert(problem.title));
//     </script>
//
// The browser sends the cookie of `moteloom login`, and no script sees a token. EventSource resumes a cut connection by itself.

export function follow(url, onUpdate, onProblem) {
  const source = new EventSource(url);
  source.onmessage = (event) => onUpdate(JSON.parse(event.data), event.lastEventId);
  source.addEventListener("problem", (event) => {
    source.close(); // the place is not kept any more, or the session is over: the reason is in the problem
    onProblem(JSON.parse(event.data));
  });
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) onProblem({ title: `the station refuses ${url}` });
  };
  return source;
}
