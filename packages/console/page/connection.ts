/** The connection of the page to the console: events, questions, interrupts and actions. */
import type { Acted, Hello, Interrupted, More, Rows } from "../src/internal/messages.ts"

/** Receives the events of the connection. */
export interface Listener {
  readonly hello: (hello: Hello) => void
  readonly rows: (rows: Rows) => void
  /** `undefined`: connected. Otherwise why not. */
  readonly lost: (reason: string | undefined) => void
}

// The version of the messages that this page reads.
const version = 1

// How long the page waits before it connects again, in milliseconds, and how long for an event that is late.
const retryAfter = 2_000
const patience = 5_000

/** Connects, and connects again whenever the connection is lost. */
export const connect = (listener: Listener): void => {
  let source: EventSource | undefined
  let timer = 0
  let interval = 1_000
  const expect = (milliseconds: number): void => {
    clearTimeout(timer)
    timer = setTimeout(() => lost("the server does not send"), milliseconds)
  }
  const lost = (reason: string): void => {
    clearTimeout(timer)
    source?.close()
    source = undefined
    listener.lost(reason)
    timer = setTimeout(open, retryAfter)
  }
  const open = (): void => {
    source = new EventSource("events")
    expect(patience + interval)
    source.addEventListener("hello", ({ data }) => {
      const hello = JSON.parse(data as string) as Hello
      if (hello.version !== version) {
        clearTimeout(timer)
        source?.close()
        return listener.lost("the server has another version: reload this page")
      }
      interval = hello.interval
      listener.hello(hello)
    })
    source.addEventListener("rows", ({ data }) => {
      expect(patience + 3 * interval)
      listener.rows(JSON.parse(data as string) as Rows)
      listener.lost(undefined)
    })
    source.addEventListener("error", () => {
      // The reason of a refusal is not readable for scripts. The tree has the same refusals, except for the viewers.
      void fetch("tree", { method: "GET", headers: { accept: "application/json" } }).then(
        ({ status }) =>
          status === 200
            ? "too many viewers, or the server has restarted"
            : status === 401 || status === 403
            ? "the server refuses this browser"
            : `the server answers ${status}`,
        () => "the server is not reachable"
      ).then((reason) =>
        source === undefined || source.readyState !== EventSource.OPEN ? listener.lost(reason) : undefined
      )
      lost("connection lost")
    })
  }
  open()
}

const post = async (path: string, body: Readonly<Record<string, string>>): Promise<unknown> => {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  if (!response.ok) throw new Error(`the server answers ${response.status}`)
  return response.json()
}

/** Interrupts a row. */
export const interrupt = async (instance: string, id: string): Promise<Interrupted["outcome"]> =>
  (await post("interrupt", { instance, id }) as Interrupted).outcome

/** Runs an action of a row. */
export const act = async (instance: string, id: string, action: string): Promise<Acted> =>
  await post("act", { instance, id, action }) as Acted

/** Asks for further children of a row. */
export const more = async (parent: string, after: string): Promise<More> => {
  const response = await fetch(`more?${new URLSearchParams({ parent, after })}`)
  if (!response.ok) throw new Error(`the server answers ${response.status}`)
  return await response.json() as More
}
