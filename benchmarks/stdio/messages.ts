/**
 * The messages of the driver. They are composed as text, so that the driver needs less processor time than the fastest
 * server.
 */

/** The form of the protocol: sessions with an `initialize` handshake, or stateless requests with metadata in each. */
export type Era = "session" | "request"

/** The newest revision of each era. */
export const revisionOf: Readonly<Record<Era, string>> = { session: "2025-11-25", request: "2026-07-28" }

const clientInfo = { name: "bench", version: "1.0.0" }

/** The metadata of each stateless request. */
export const meta = {
  "io.modelcontextprotocol/protocolVersion": revisionOf.request,
  "io.modelcontextprotocol/clientInfo": clientInfo,
  "io.modelcontextprotocol/clientCapabilities": {}
}

/** A request as a line. */
export const request = (id: number, method: string, params: object): string =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n"

/** The `initialize` request. */
export const initialize = (id: number): string =>
  request(id, "initialize", { protocolVersion: revisionOf.session, capabilities: {}, clientInfo })

/** The notification that ends the handshake. */
export const initialized = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }) + "\n"

/** The first request of an era. */
export const opening = (era: Era, id: number): string =>
  era === "session" ? initialize(id) : request(id, "server/discover", { _meta: meta })

const text = (id: number): string => `Hello, n${id}!`

const callTail: Readonly<Record<Era, string>> = {
  session: `"}}}\n`,
  request: `"},"_meta":${JSON.stringify(meta)}}}\n`
}

/** A `tools/call` with a unique name, so that the response to another call is not mistaken for this one's. */
export const call = (era: Era, id: number): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"greet","arguments":{"name":"n${id}${
    callTail[era]
  }`

/**
 * Parses the successful response to a `call` and returns its id. Throws for anything else. effect/ai sends the text as
 * structured content too, and its text is JSON then.
 */
const parseResponse = (line: string): number => {
  const { id, result } = JSON.parse(line)
  const expected = text(id)
  const content = result?.content
  const received = content?.length === 1 && content[0].type === "text" ? content[0].text : undefined
  const isJson = result?.structuredContent === expected && received === JSON.stringify(expected)
  if (typeof id !== "number" || result?.isError === true || (received !== expected && !isJson)) {
    throw new Error(`not the response to call ${id}: ${line}`)
  }
  return id
}

/**
 * An exact and cheap check of responses. All responses of a server are equal except for the id and the text. So the
 * first one is parsed and becomes a pattern, and later lines are compared with the pattern. A line that differs is
 * parsed.
 */
export const makeVerifier = (): (line: string) => number => {
  const idAt = `"id":`
  let parts: ReadonlyArray<string> | undefined
  let idFirst = true

  const learn = (line: string): number => {
    const id = parseResponse(line)
    const marks = line.replace(`${idAt}${id}`, `${idAt}\0`).replaceAll(`n${id}!`, "\0").split("\0")
    idFirst = line.indexOf(`${idAt}${id}`) < line.indexOf(text(id))
    parts = marks
    return id
  }

  const readId = (line: string): number => {
    let at = line.indexOf(idAt, idFirst ? 0 : line.lastIndexOf("}", line.length - 2)) + idAt.length
    let id = 0
    for (; at < line.length; at++) {
      const digit = line.charCodeAt(at) - 48
      if (digit < 0 || digit > 9) break
      id = id * 10 + digit
    }
    return id
  }

  const fill = (pattern: ReadonlyArray<string>, id: number): string => {
    const name = `n${id}!`
    let filled = pattern[0]!
    for (let index = 1; index < pattern.length; index++) {
      const isId = idFirst ? index === 1 : index === pattern.length - 1
      filled += (isId ? id : name) + pattern[index]!
    }
    return filled
  }

  return (line) => {
    if (parts === undefined) return learn(line)
    const id = readId(line)
    return fill(parts, id) === line ? id : parseResponse(line)
  }
}
