/** The bytes of the requests in the table of HTTP cases. */
import * as kit from "../kit.ts"

/** The route that a table is for: requests for it are answered with `ok`. */
export interface Route {
  readonly path: string
  /** The query with its question mark, if the route needs one. */
  readonly query: string
  readonly ok: number
  /** The methods of an `Allow` header. */
  readonly allow: string
  /** The headers of a request apart from `Host` and its length. */
  readonly headers: ReadonlyArray<string>
  /** A call of the tool `echo` with this text, as JSON. */
  readonly call: (text: string) => string
}

const modern = (text: string): kit.Request => kit.modern("tools/call", { name: "echo", arguments: { text } })

/** The endpoint, with a request of the stateless revision. */
export const streamableHttp: Route = {
  path: "/mcp",
  query: "",
  ok: 200,
  allow: "GET, POST, DELETE",
  headers: Object.entries(modern("").headers!).map(([name, value]) => `${name}: ${String(value)}`),
  call: (text) => JSON.stringify(modern(text).body)
}

/** The messages of HTTP+SSE, for an open session. */
export const legacyMessages = (sessionId: string): Route => ({
  path: "/messages",
  query: `?sessionId=${sessionId}`,
  ok: 202,
  allow: "POST",
  headers: ["Content-Type: application/json"],
  call: (text) =>
    JSON.stringify({ jsonrpc: "2.0", id: text, method: "tools/call", params: { name: "echo", arguments: { text } } })
})

const nameOf = (line: string): string => line.split(":")[0]!.trim().toLowerCase()

export interface Changes {
  /** The request line. */
  readonly line?: string
  /** Header lines in place of those with the same name; a name without a colon removes them. */
  readonly set?: ReadonlyArray<string>
  /** Header lines before all others. */
  readonly first?: ReadonlyArray<string>
  /** Header lines after all others. */
  readonly last?: ReadonlyArray<string>
  /** The header lines with the length, in place of `Content-Length`. */
  readonly framing?: ReadonlyArray<string>
  readonly body?: string
}

/** The bytes of a POST. Each character is one byte. */
export const post = (route: Route, {
  body = route.call("first"),
  first = [],
  framing,
  last = [],
  line = `POST ${route.path}${route.query} HTTP/1.1`,
  set = []
}: Changes = {}): string => {
  const changed = new Set(set.map(nameOf))
  const kept = ["Host: localhost", ...route.headers].filter((one) => !changed.has(nameOf(one)))
  const added = set.filter((one) => one.includes(":"))
  const length = framing ?? [`Content-Length: ${body.length}`]
  return `${line}\r\n${[...first, ...kept, ...added, ...length, ...last].join("\r\n")}\r\n\r\n${body}`
}

/** The bytes of a request without a body. */
export const bare = (line: string, ...lines: ReadonlyArray<string>): string =>
  `${line}\r\n${["Host: localhost", "Accept: text/event-stream", ...lines].join("\r\n")}\r\n\r\n`

/** The request that follows each case. */
export const next = (route: Route): string => post(route, { body: route.call("next"), last: ["Connection: close"] })

/** A chunk of a body. */
export const chunk = (text: string, extension = ""): string => `${text.length.toString(16)}${extension}\r\n${text}\r\n`

/** A body in two chunks. */
export const chunked = (body: string): string => {
  const half = Math.floor(body.length / 2)
  return `${chunk(body.slice(0, half))}${chunk(body.slice(half))}0\r\n\r\n`
}
