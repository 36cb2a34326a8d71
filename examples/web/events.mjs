// Follows the answers of a query with EventSource, in a page of the station's own origin:
//
//     <script type="module">
//       import { follow } from "./events.mjs";
//       follow("/v1/queries/1/results", (update) => console.log(update.time, update.rows), (problem) => alert(problem.title));
//     </script>
//
// The browser sends the cookie of `moteloom login`, and no script sees a token. EventSource resumes a cut connection by itself, but
// gives up at an answer such as 502, which a proxy sends while the station restarts. Then a fetch says whether to try again.

const [FIRST_DELAY, LONGEST_DELAY] = [250, 10_000]; // ms

export function follow(url, onUpdate, onProblem) {
  const place = new URL(url, globalThis.location?.href);
  let [source, timer, isOver, delay] = [null, null, false, FIRST_DELAY];

  function end(problem) {
    close();
    onProblem(problem);
  }

  function close() {
    isOver = true;
    clearTimeout(timer);
    source.close();
  }

  function open() {
    source = new EventSource(place);
    source.onmessage = (event) => {
      const [epoch, , number] = event.lastEventId.split("-");
      place.searchParams.delete("since");
      place.searchParams.set("after", number); // for an EventSource of its own; this one sends Last-Event-ID
      place.searchParams.set("epoch", epoch);
      delay = FIRST_DELAY;
      onUpdate(JSON.parse(event.data), event.lastEventId);
    };
    // The place is not kept any more, or the session is over: the reason is in the problem.
    source.addEventListener("problem", (event) => end(JSON.parse(event.data)));
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED && !isOver) timer = setTimeout(check, delay);
    };
  }

  async function check() {
    delay = Math.min(2 * delay, LONGEST_DELAY);
    const page = new URL(place);
    page.searchParams.set("limit", 1);
    const answer = await fetch(page).catch(() => null); // without an answer EventSource goes on
    const isRefusal = answer !== null && answer.status >= 400 && answer.status < 500 && answer.status !== 429;
    const problem = isRefusal ? await answer.json().catch(() => ({ title: `${answer.status} for ${url}` })) : null;
    if (isOver) return;
    if (isRefusal) end(problem);
    else open();
  }

  open();
  return { close };
}
