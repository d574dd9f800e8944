/**
 * The cases that an HTTP server decides itself, before Skein gets the request or after its answer. `docs/http.md`
 * describes them.
 */
import type { Answers } from "./cases.ts"
import type { HostName } from "./hosts.ts"

export interface Decision {
  /** 200 stands for the status of success of a route. */
  readonly answers: Answers
  /** How many requests reach the tool, if not those with a status of success: their answers are lost. */
  readonly calls?: number | undefined
  /** A header that the first answer has. */
  readonly header?: RegExp | undefined
}

/** The decisions of a server, by case. */
export type Decisions = Readonly<Record<string, Decision>>

/** The HTTP server of Node without the options of `NodeHttp`, under each of the others. */
const node: Decisions = {
  "a target of 20,000 bytes": { answers: [431] },
  "a later version": { answers: [400] },
  "the preface of HTTP/2": { answers: [400] },
  CONNECT: { answers: [] },
  // Node answers before the handler, closes the connection, and still passes the next request on.
  "no Host": { answers: [400], calls: 1 },
  "no Host, and the absolute form": { answers: [400], calls: 1 },
  // The 400 for bytes that it cannot parse precedes the answer to the request before.
  "a body without a length": { answers: [400] },
  "a body longer than its length": { answers: [400], calls: 1 },
  "a request after Connection: close": { answers: [400], calls: 1 },
  "another expectation": { answers: [417, 200] },
  // It sends 100 before the handler sees the request.
  "another expectation beside 100-continue": { answers: [100, 417] },
  "Expect: 100-continue for a refused request": { answers: [100, 403] }
}

const express: Decisions = {
  ...node,
  "the asterisk form of another method": { answers: [404, 200] },
  "an invalid escape": { answers: [400, 200] }
}

/** Fastify reads the body of each request, also of one that is refused. */
const fastify: Decisions = {
  ...node,
  "an invalid escape": { answers: [400, 200] },
  "no Host in HTTP/1.0": { answers: [400] },
  // It closes the connection, and still passes the next request on.
  "no length": { answers: [400], calls: 1 },
  "Content-Length: 2 for two bytes": { answers: [400], calls: 1 },
  "a PUT with a body": { answers: [415, 200] },
  "a DELETE with chunks": { answers: [415, 200] },
  "chunks with an extension of 20,000 bytes": { answers: [400] },
  PROPFIND: { answers: [404, 200] },
  QUERY: { answers: [400, 200] },
  // Its parser drops the mark, and replaces bytes that are not UTF-8.
  "a byte order mark": { answers: [200, 200] },
  "bytes that are not UTF-8": { answers: [200, 200] },
  "a body in UTF-16": { answers: [400], calls: 1 },
  "another expectation beside 100-continue": { answers: [100, 417, 200] },
  "Expect: 100-continue for a refused request": { answers: [100, 403, 200] }
}

/** A `Request` has a normalized URL, and has neither its header lines nor its version. */
const hono: Decisions = {
  ...node,
  "a line without a version": { answers: [400], calls: 1 },
  "the absolute form in capitals, with a port": { answers: [400, 200] },
  "the absolute form, and another Host": { answers: [403, 200] },
  "the absolute form with a user": { answers: [403, 200] },
  "the absolute form without a host": { answers: [403, 200] },
  "the asterisk form": { answers: [400, 200] },
  "a fragment": { answers: [200, 200] },
  "a path with ..": { answers: [200, 200] },
  "a path with .": { answers: [200, 200] },
  "no Host in HTTP/1.0": { answers: [400], calls: 1 },
  "Host: \"%6cocalhost\"": { answers: [400, 200] },
  "Host: \"localhost:\"": { answers: [400, 200] },
  // Unless the application sets `maxHeadersCount` of its server to 0.
  "2,100 short lines before a foreign Origin": { answers: [200, 200] },
  "2,100 short lines before a second Host": { answers: [200, 200] },
  "two lines of Origin: http://localhost": { answers: [403, 200] },
  "two lines of Content-Type: application/json": { answers: [415, 200] },
  "two lines of Mcp-Session-Id in a DELETE": { answers: [404, 200] },
  "two lines of Mcp-Session-Id: a": { answers: [200, 200] },
  "two lines of Authorization": { answers: [200, 200] },
  "two lines of Mcp-Param-A": { answers: [200, 200] },
  ...Object.fromEntries([
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: identity, chunked",
    "Transfer-Encoding: deflate , chunked",
    "Transfer-Encoding: x-gzip,chunked",
    "gzip and chunked on two lines"
  ].map((what) => [what, { answers: [501], calls: 1 }])),
  "another coding of a GET": { answers: [400, 200] },
  "a DELETE with chunks": { answers: [400, 200] },
  "chunks in HTTP/1.0": { answers: [400], calls: 1 },
  "chunks in HTTP/1.0 with keep-alive": { answers: [200, 200] },
  "another expectation beside 100-continue": { answers: [100, 200, 200] },
  "Expect: 100-continue for a refused request": { answers: [100, 403, 200] }
}

const routed = [
  "a slash after the path",
  "two slashes after the path",
  "two slashes before the path",
  "the path in capitals",
  "parameters of the path",
  "an encoded letter"
]

/** Effect's router finds routes by paths regardless of case, of slashes at the end, and of the encoding of letters. */
const router: Decisions = {
  ...node,
  "the absolute form without a host": { answers: [404, 200] },
  "the absolute form of another scheme": { answers: [404, 200] },
  "the asterisk form of another method": { answers: [404, 200] },
  ...Object.fromEntries(routed.map((what) => [what, { answers: [200, 200] }])),
  // The connection ends after an upgrade that no route accepts. The body of one to a WebSocket is not read.
  "Upgrade to h2c": { answers: [200], header: /^connection: close\r$/im },
  "Upgrade to a WebSocket": { answers: [400] },
  "a DELETE with chunks": { answers: [400, 200] },
  "another expectation beside 100-continue": { answers: [417], calls: 1 },
  "Expect: 100-continue for a refused request": { answers: [403], calls: 1 }
}

/** HTTP+SSE has no header with the revision. */
const legacyHono: Decisions = {
  ...hono,
  "two lines of MCP-Protocol-Version: 2025-11-25": { answers: [200, 200] },
  "another coding of a GET": { answers: [405, 200] }
}

/** The endpoint does not find the paths of HTTP+SSE as the router does. */
const legacyRouter: Decisions = {
  ...router,
  ...Object.fromEntries(routed.map((what) => [what, { answers: [400, 200] }]))
}

export const decisions: Readonly<Record<HostName, Decisions>> = {
  NodeHttp: {},
  "node:http": node,
  Express: express,
  Fastify: fastify,
  Hono: hono,
  HttpRouter: router
}

/** The decisions about the messages of HTTP+SSE. */
export const legacyDecisions: typeof decisions = { ...decisions, Hono: legacyHono, HttpRouter: legacyRouter }
