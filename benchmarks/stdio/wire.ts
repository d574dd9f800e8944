/**
 * What the driver says on the wire. It is composed by hand, so that the driver stays cheaper than the cheapest server.
 */

/** Which form of the protocol is spoken: after an `initialize` handshake, or with metadata in each request. */
export type Era = "session" | "request"

/** The revision that is spoken in an era: the newest one. */
export const revisionOf: Readonly<Record<Era, string>> = { session: "2025-11-25", request: "2026-07-28" }

const clientInfo = { name: "bench", version: "1.0.0" }

/** The metadata that each request of the request era carries. */
export const meta = {
  "io.modelcontextprotocol/protocolVersion": revisionOf.request,
  "io.modelcontextprotocol/clientInfo": clientInfo,
  "io.modelcontextprotocol/clientCapabilities": {}
}

/** The line of a request. */
export const request = (id: number, method: string, params: object): string =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n"

/** The `initialize` request of the session era. */
export const initialize = (id: number): string =>
  request(id, "initialize", { protocolVersion: revisionOf.session, capabilities: {}, clientInfo })

/** The notification that ends the handshake of the session era. */
export const initialized = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }) + "\n"

/** The request that an era opens with. */
export const opening = (era: Era, id: number): string =>
  era === "session" ? initialize(id) : request(id, "server/discover", { _meta: meta })

const text = (id: number): string => `Hello, n${id}!`

const callTail: Readonly<Record<Era, string>> = {
  session: `"}}}\n`,
  request: `"},"_meta":${JSON.stringify(meta)}}}\n`
}

/** The line of a `tools/call` that greets a name of its own, so that an answer to another call is not taken for this one's. */
export const call = (era: Era, id: number): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"greet","arguments":{"name":"n${id}${
    callTail[era]
  }`

/**
 * Fails unless the line is the successful answer to `call` with its id. A server may give the text as structured content too,
 * and then mirror it as JSON, as effect/ai does.
 */
const parseAnswer = (line: string): number => {
  const { id, result } = JSON.parse(line)
  const expected = text(id)
  const content = result?.content
  const said = content?.length === 1 && content[0].type === "text" ? content[0].text : undefined
  const mirrored = result?.structuredContent === expected && said === JSON.stringify(expected)
  if (typeof id !== "number" || result?.isError === true || (said !== expected && !mirrored)) {
    throw new Error(`Not the answer to call ${id}: ${line}`)
  }
  return id
}

/**
 * A check of answers that is exact and cheap. A server writes its answers alike but for the id and the text, so the first
 * one, parsed in full, becomes a pattern; a later line must equal the pattern filled in. A line that differs is parsed.
 */
export const makeVerifier = (): (line: string) => number => {
  const idAt = `"id":`
  let parts: ReadonlyArray<string> | undefined
  let idFirst = true

  const learn = (line: string): number => {
    const id = parseAnswer(line)
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
    return fill(parts, id) === line ? id : parseAnswer(line)
  }
}
