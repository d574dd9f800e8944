/**
 * One table of requests as bytes, and of the statuses that RFC 9110 and 9112 demand. Each request is followed by a valid
 * one on the same connection, whose answer shows that the connection was kept. A list without it shows that the
 * connection was closed, and that the bytes after the request did not reach a handler.
 */
import * as requests from "./requests.ts"
import type { Changes, Route } from "./requests.ts"

export type Answers = ReadonlyArray<number>

export interface Case {
  /** Unique in the table. */
  readonly what: string
  readonly bytes: string
  /** The answers, also to the next request. */
  readonly answers: Answers
  /**
   * The next request is sent after the first answer, because Node loses bytes in a packet with an upgrade; or it is not
   * sent; or the client ends its side of the connection instead.
   */
  readonly next?: "later" | "none" | "end" | undefined
  /** A header that the first answer has. */
  readonly header?: RegExp | undefined
}

export interface Section {
  readonly clause: string
  readonly cases: ReadonlyArray<Case>
}

type More = Pick<Case, "next" | "header">

const closed = (...statuses: Answers): Answers => statuses

/** The cases of a request that every route must pass. */
export const sections = (route: Route): ReadonlyArray<Section> => {
  const { ok, path, query } = route
  const kept: Answers = [ok, ok]
  const refused = (status: number): Answers => [status, ok]
  const json = route.call("first")
  const chunked = requests.chunked(json)

  /** A case of a POST. */
  const post = (what: string, changes: Changes, answers: Answers, more?: More): Case => ({
    what,
    bytes: requests.post(route, changes),
    answers,
    ...more
  })
  const bytes = (what: string, bytes: string, answers: Answers, more?: More): Case => ({
    what,
    bytes,
    answers,
    ...more
  })
  const target = (what: string, target: string, answers: Answers, ...set: ReadonlyArray<string>): Case =>
    post(what, { line: `POST ${target} HTTP/1.1`, set }, answers)
  const own = `${path}${query}`
  const more = query === "" ? "?" : `${query}&`
  /** Cases that differ in a header. */
  const headers = (
    name: string,
    values: ReadonlyArray<string>,
    answers: Answers,
    more?: More
  ): ReadonlyArray<Case> =>
    values.map((value) => post(`${name}: "${value}"`, { set: [`${name}: ${value}`] }, answers, more))
  /** A case of a body in chunks. */
  const coded = (what: string, coding: string, body: string, answers: Answers): Case =>
    post(what, { framing: [`Transfer-Encoding: ${coding}`], body }, answers)

  return [
    {
      clause: "RFC 9112, 2 and 3 · the request line",
      cases: [
        post("a valid request", {}, kept),
        bytes("an empty line before the request line", `\r\n${requests.post(route)}`, kept),
        target("a query", `${path}${more}a=1&b=%2F%3F`, kept),
        target("a target of 8,000 bytes", `${path}${more}${"a".repeat(7_900)}`, kept),
        target("a target of 20,000 bytes", `${path}${more}${"a".repeat(20_000)}`, closed(414)),
        post("a method in lower case", { line: `post ${own} HTTP/1.1` }, closed(400)),
        post("an unknown method", { line: `FOO ${own} HTTP/1.1` }, closed(400)),
        post("a line without a version", { line: `POST ${own}` }, closed(400)),
        post("a line with a fourth word", { line: `POST ${own} x HTTP/1.1` }, closed(400)),
        post("a line with a tab", { line: `POST\t${own} HTTP/1.1` }, closed(400)),
        post("a line with two spaces after the target", { line: `POST ${own}  HTTP/1.1` }, kept),
        post("another protocol", { line: `POST ${own} HTTQ/1.1` }, closed(400)),
        post("a protocol in lower case", { line: `POST ${own} http/1.1` }, closed(400)),
        post("a later version", { line: `POST ${own} HTTP/3.0` }, closed(505)),
        bytes("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", closed(505)),
        bytes("lines that end with LF", requests.post(route).replaceAll("\r\n", "\n"), closed(400)),
        post("a CR without LF in a line", { last: ["X: a\rY: b"] }, closed(400)),
        post("a LF without CR in a line", { last: ["X: a\nY: b"] }, closed(400)),
        bytes("bytes of TLS", "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", closed(400), { next: "none" })
      ]
    },
    {
      clause: "RFC 9112, 3.2 · the request target",
      cases: [
        target("the absolute form of this host", `http://localhost${own}`, kept),
        target("the absolute form in capitals, with a port", `HTTP://LOCALHOST:3000${own}`, kept),
        target("the absolute form of another host", `http://evil.example${own}`, refused(403)),
        target("the absolute form, and another Host", `http://localhost${own}`, kept, "Host: evil.example"),
        target("the absolute form with a user", `http://localhost@evil.example${own}`, refused(400)),
        target("the absolute form without a host", `http://${own}`, refused(400)),
        target("the absolute form of another scheme", `ftp://localhost${own}`, refused(400)),
        target("the absolute form without a path", "http://localhost", refused(404)),
        target("the authority form", "localhost:3000", closed(400)),
        bytes("CONNECT", requests.bare("CONNECT localhost:80 HTTP/1.1"), closed(501)),
        bytes("the asterisk form", requests.bare("OPTIONS * HTTP/1.1"), refused(404)),
        bytes("the asterisk form of another method", requests.bare("GET * HTTP/1.1"), refused(400)),
        target("a fragment", `${own}#x`, refused(400)),
        target("a byte above 127", `${path}${more}\xe9`, closed(400)),
        target("a NUL", `${path}${more}\0`, closed(400)),
        ...Object.entries({
          "the root": "/",
          "a slash after the path": `${path}/`,
          "two slashes after the path": `${path}//`,
          "two slashes before the path": `/${path}`,
          "the path in capitals": path.toUpperCase(),
          "a letter after the path": `${path}x`,
          "parameters of the path": `${path};a=1`,
          "an encoded slash": `${path}%2F`,
          "an encoded NUL": `${path}%00`,
          "an encoded question mark": `${path}%3F`,
          "an encoded letter": `/%${path.charCodeAt(1).toString(16)}${path.slice(2)}`,
          "an invalid escape": `${path}%`,
          "a path with ..": `/x/..${path}`,
          "a path with .": `/.${path}`
        }).map(([what, one]) => target(what, `${one}${query}`, refused(404)))
      ]
    },
    {
      clause: "RFC 9112, 3.2 and RFC 9110, 7.2 · Host",
      cases: [
        post("no Host", { set: ["Host"] }, refused(400)),
        post("no Host in HTTP/1.0", { set: ["Host"], line: `POST ${own} HTTP/1.0` }, closed(403)),
        post("two equal Hosts", { last: ["host: localhost"] }, refused(400)),
        post("a second Host of another name", { last: ["HOST: evil.example"] }, refused(400)),
        post("a first Host of another name", { first: ["Host: evil.example"] }, refused(400)),
        post("a first Host without a value", { first: ["Host:"] }, refused(400)),
        post("two Hosts, and the absolute form", { line: `POST http://localhost${own} HTTP/1.1`, last: ["Host: a"] }, [
          400,
          ok
        ]),
        post("no Host, and the absolute form", { line: `POST http://localhost${own} HTTP/1.1`, set: ["Host"] }, [
          400,
          ok
        ]),
        ...headers("Host", [
          `localhost/`,
          `localhost${path}`,
          "http://localhost",
          "a@localhost",
          "localhost:80@evil.example",
          "localhost, localhost",
          "local host",
          "localhost:x",
          "localhost:80:80",
          "localhost:999999",
          "localhost#",
          "localhost?",
          "localhost\\",
          "[::1",
          "::1",
          "localh\xf6st",
          ""
        ], refused(400)),
        ...headers("Host", [
          "evil.example",
          "localhost.evil.example",
          "evil.localhost",
          "[::2]",
          "127.0.0.2",
          "0.0.0.0",
          "2130706433",
          "localhost..",
          "%6cocalhost"
        ], refused(403)),
        ...headers(
          "Host",
          ["LOCALHOST", "localhost:3000", "localhost:", "localhost.", "127.0.0.1:1", "[::1]:3000", " localhost \t"],
          kept
        )
      ]
    },
    {
      clause: "RFC 9110, 5 and RFC 9112, 5 · header lines",
      cases: [
        post("900 lines", { last: Array(900).fill("a:") }, kept),
        post(
          "2,100 short lines before a foreign Origin",
          { last: [...Array(2_100).fill("a:"), "Origin: https://evil.example"] },
          refused(431)
        ),
        post(
          "2,100 short lines before a second Host",
          { last: [...Array(2_100).fill("a:"), "Host: evil.example"] },
          refused(431)
        ),
        post("a section of 20,000 bytes", { last: [`X: ${"a".repeat(20_000)}`] }, closed(431)),
        post("a name of 20,000 bytes", { last: [`${"a".repeat(20_000)}: X`] }, closed(431)),
        post("a space before the colon", { last: ["X : 1"] }, closed(400)),
        post("a name that is not a token", { last: ["X(y): 1"] }, closed(400)),
        post("a line without a name", { last: [": 1"] }, closed(400)),
        post("a line without a colon", { last: ["X"] }, closed(400)),
        post("a folded line", { last: ["X: a", " b"] }, closed(400)),
        post("a folded Host", { set: ["Host: localhost\r\n .evil.example"] }, closed(400)),
        post("a space before the first line", { first: [" X: a"] }, closed(400)),
        post("a NUL in a value", { last: ["X: a\0"] }, closed(400)),
        post("a control character in a value", { last: ["X: a\x07b"] }, closed(400)),
        post("an empty value", { last: ["X:", "Cookie:"] }, kept),
        post("spaces and tabs around a value", { set: ["Content-Type: \t application/json \t "] }, kept),
        post("bytes above 127 in a value", { last: ["X: \xe9\xff"] }, kept),
        post("names that objects inherit", { last: ["__proto__: a", "constructor: b", "__proto__: c"] }, kept),
        bytes(
          "names in capitals",
          requests.post(route).replace(/^[\w-]+:/gm, (name) => name.toUpperCase()),
          kept
        ),
        bytes("names in lower case", requests.post(route).replace(/^[\w-]+:/gm, (name) => name.toLowerCase()), kept),
        post("headers that other servers obey", {
          last: ["X-HTTP-Method-Override: DELETE", "X-Forwarded-Host: evil.example", "X-Original-URL: /other"]
        }, kept),
        post("conditions and ranges", { last: ["If-None-Match: *", "If-Match: \"a\"", "Range: bytes=0-1"] }, kept),
        post("an Origin of this host", { last: ["Origin: http://localhost:5173"] }, kept),
        ...["https://evil.example", "null", "http://localhost.evil.example", "http://localhost@evil.example"].map((
          one
        ) => post(`Origin: ${one}`, { last: [`Origin: ${one}`] }, refused(403))),
        ...[
          "Origin: http://localhost",
          "Content-Type: application/json",
          "MCP-Protocol-Version: 2025-11-25",
          "Mcp-Method: tools/call",
          "Mcp-Name: echo",
          "Mcp-Session-Id: a"
        ].map((line) => post(`two lines of ${line}`, { set: [line], last: [line] }, refused(400))),
        post(
          "two lines of Authorization",
          { last: ["Authorization: Bearer a", "authorization: Bearer b"] },
          refused(400)
        ),
        post("two lines of Mcp-Param-A", { last: ["Mcp-Param-A: a", "mcp-param-a: a"] }, refused(400))
      ]
    },
    {
      clause: "RFC 9112, 6 and 7 · the end of the body",
      cases: [
        post("Content-Length: 2 for two bytes", { framing: ["Content-Length: 2"], body: "x1" }, refused(400)),
        post("a length with leading zeros", { framing: [`Content-Length: 000${json.length}`] }, kept),
        ...["+2", "0x2", "2, 2", "2,3", "-1", "2.0", "1e1", "", "2 2", "2;", "99999999999999999999"].map((length) =>
          post(`Content-Length: "${length}"`, { framing: [`Content-Length: ${length}`], body: "{}" }, closed(400))
        ),
        post("two equal lengths", { last: [`Content-Length: ${json.length}`] }, closed(400)),
        post("two lengths", { last: ["Content-Length: 2"] }, closed(400)),
        post("no length", { framing: [], body: "" }, refused(400)),
        post("a body without a length", { framing: [] }, closed(400, 400)),
        post("a body longer than its length", { framing: [`Content-Length: ${json.length}`], body: `${json}{}` }, [
          ok,
          400
        ]),
        post("a body that is cut", { framing: [`Content-Length: ${json.length + 1}`] }, closed(400), { next: "end" }),
        coded("chunks", "chunked", chunked, kept),
        coded("chunks, written in capitals", "CHUNKED", chunked, kept),
        coded("chunks, after spaces", "  \tchunked", chunked, kept),
        coded(
          "chunks of one byte",
          "chunked",
          `${[...json].map((one) => requests.chunk(one)).join("")}0\r\n\r\n`,
          kept
        ),
        coded("chunks with an extension", "chunked", `${requests.chunk(json, ";a=b")}0\r\n\r\n`, kept),
        coded("chunks with a quoted extension", "chunked", `${requests.chunk(json, ";a=\"b;c\"")}0\r\n\r\n`, kept),
        coded("chunks with an extension of 20,000 bytes", "chunked", requests.chunk(json, `;${"a".repeat(20_000)}`), [
          413
        ]),
        coded("chunks with a LF in an extension", "chunked", `${requests.chunk(json, ";a\nb")}0\r\n\r\n`, closed(400)),
        coded(
          "chunks with trailers",
          "chunked",
          `${requests.chunk(json)}0\r\nHost: evil.example\r\nOrigin: https://evil.example\r\n\r\n`,
          kept
        ),
        coded("chunks with trailers of a length", "chunked", `${requests.chunk(json)}0\r\nContent-Length: 9\r\n\r\n`, [
          400
        ]),
        ...["+2", "-2", "0x2", "2 ", " 2", "", "2,", "fffffffffffffffff", "g"].map((size) =>
          coded(`a chunk of size "${size}"`, "chunked", `${size}\r\n{}\r\n0\r\n\r\n`, closed(400))
        ),
        coded("a chunk that is longer than its size", "chunked", "1\r\n{}\r\n0\r\n\r\n", closed(400)),
        coded("a chunk that ends with LF", "chunked", "2\n{}\n0\n\n", closed(400)),
        coded("a chunk without its end", "chunked", "2\r\n{}0\r\n\r\n", closed(400)),
        post(
          "chunks that are cut",
          { framing: ["Transfer-Encoding: chunked"], body: requests.chunk(json) },
          closed(400),
          { next: "end" }
        ),
        post("a length and chunks", { last: ["Transfer-Encoding: chunked"], body: chunked }, closed(400)),
        post("chunks and a length", { first: ["Transfer-Encoding: chunked"], body: chunked }, closed(400)),
        ...["gzip, chunked", "identity, chunked", "deflate , chunked", "x-gzip,chunked"].map((coding) =>
          coded(`Transfer-Encoding: ${coding}`, coding, chunked, closed(501))
        ),
        ...[
          "chunked, chunked",
          "gzip",
          "identity",
          "xchunked",
          "chunkedx",
          "chunked;a=b",
          "\"chunked\"",
          "chunked, gzip",
          "chunked, identity",
          "\x0bchunked",
          ""
        ].map((coding) => coded(`Transfer-Encoding: "${coding}"`, coding, chunked, closed(400))),
        post("two lines of chunked", {
          framing: ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
          body: chunked
        }, closed(400)),
        post("gzip and chunked on two lines", {
          framing: ["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"],
          body: chunked
        }, closed(501)),
        bytes(
          "another coding of a GET",
          `${requests.bare(`GET ${own} HTTP/1.1`, "Transfer-Encoding: gzip, chunked")}0\r\n\r\n`,
          closed(501)
        ),
        post("chunks in HTTP/1.0", {
          line: `POST ${own} HTTP/1.0`,
          framing: ["Transfer-Encoding: chunked"],
          body: chunked
        }, closed(400)),
        post("chunks in HTTP/1.0 with keep-alive", {
          line: `POST ${own} HTTP/1.0`,
          framing: ["Transfer-Encoding: chunked"],
          last: ["Connection: keep-alive"],
          body: chunked
        }, closed(400)),
        bytes(
          "a PUT with a body",
          `${requests.bare(`PUT ${own} HTTP/1.1`, "Content-Length: 2")}{}`,
          refused(405)
        )
      ]
    },
    {
      clause: "RFC 9112, 9 and RFC 9110, 7.6 to 7.8 · connections",
      cases: [
        post("Connection: close", { last: ["Connection: close"] }, closed(ok), { next: "none" }),
        post("a request after Connection: close", { last: ["Connection: close"] }, closed(ok)),
        post("Connection: Close in a list", { last: ["Connection: x, Close"] }, closed(ok), { next: "none" }),
        post("HTTP/1.0", { line: `POST ${own} HTTP/1.0` }, closed(ok), { next: "none" }),
        post("HTTP/1.0 with keep-alive", { line: `POST ${own} HTTP/1.0`, last: ["Connection: keep-alive"] }, kept),
        post(
          "Upgrade to h2c",
          {
            last: ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"]
          },
          kept,
          { next: "later" }
        ),
        post("Upgrade to a WebSocket", { last: ["Connection: Upgrade", "Upgrade: websocket"] }, kept, {
          next: "later"
        }),
        post("Upgrade without Connection", { last: ["Upgrade: h2c"] }, kept),
        post("TE and trailers", { last: ["TE: trailers", "Connection: TE"] }, kept)
      ]
    },
    {
      clause: "RFC 9110, 9 and 15.5 · methods",
      cases: [
        ...["PUT", "PATCH", "TRACE", "PROPFIND", "QUERY", "HEAD", "OPTIONS"].map((method) =>
          bytes(method, requests.bare(`${method} ${own} HTTP/1.1`), refused(405), {
            header: new RegExp(`^allow: ${route.allow}\r$`, "im")
          })
        ),
        bytes("PUT to another path", requests.bare("PUT /other HTTP/1.1"), refused(404))
      ]
    },
    {
      clause: "RFC 9110, 8 · content",
      cases: [
        ...headers("Content-Type", [
          "application/json",
          "APPLICATION/Json",
          "application/json; charset=utf-8",
          "application/json ;charset=\"UTF-8\" ; a=b",
          "application/json;",
          "application/json; profile=\"a,b;c\\\"d\""
        ], kept),
        ...headers("Content-Type", [
          "text/plain",
          "text/plain; application/json",
          "application/jsonp",
          "application/json-rpc",
          "application/vnd.api+json",
          "application/json x",
          "application/json; charset",
          "application/json; a=\"b",
          "application/x-www-form-urlencoded",
          "*/*",
          ""
        ], refused(415)),
        post("no Content-Type", { set: ["Content-Type"] }, refused(415)),
        post("Content-Encoding: gzip", { last: ["Content-Encoding: gzip"] }, refused(415), {
          header: /^accept-encoding: identity\r$/im
        }),
        post("two codings on two lines", { last: ["Content-Encoding: identity", "Content-Encoding: br"] }, [415, ok]),
        post("Content-Encoding: identity", { last: ["Content-Encoding: Identity"] }, kept),
        post("an empty Content-Encoding", { last: ["Content-Encoding:"] }, kept),
        post("a byte order mark", { body: `\xef\xbb\xbf${json}` }, refused(400)),
        post("bytes that are not UTF-8", { body: json.replace("first", "\xff") }, refused(400)),
        post("a body in UTF-16", {
          set: ["Content-Type: application/json; charset=utf-16"],
          body: Buffer.from(json, "utf16le").toString("latin1")
        }, refused(400))
      ]
    },
    {
      clause: "RFC 9110, 10.1.1 · Expect",
      cases: [
        post("Expect: 100-continue", { last: ["Expect: 100-Continue"] }, [100, ...kept]),
        post(
          "Expect: 100-continue in HTTP/1.0",
          { line: `POST ${own} HTTP/1.0`, last: ["Expect: 100-continue"] },
          closed(ok),
          { next: "none" }
        ),
        post("another expectation", { last: ["Expect: x"] }, closed(417)),
        post("another expectation beside 100-continue", { last: ["Expect: 100-continue, x"] }, closed(417)),
        post(
          "Expect: 100-continue for a refused request",
          { set: ["Host: evil.example"], last: ["Expect: 100-continue"] },
          closed(403)
        )
      ]
    }
  ]
}

/** Further cases of the endpoint: its negotiation, its GET and DELETE, and the stream of HTTP+SSE. */
export const endpointSections = (route: Route): ReadonlyArray<Section> => {
  const { ok, path } = route
  const accept = (value: string, answers: Answers): Case => ({
    what: `Accept: "${value}"`,
    bytes: requests.post(route, { set: [`Accept: ${value}`] }),
    answers
  })
  const get = (what: string, line: string, answers: Answers, ...lines: ReadonlyArray<string>): Case => ({
    what,
    bytes: requests.bare(line, ...lines),
    answers
  })
  return [
    {
      clause: "RFC 9110, 12 · content negotiation",
      cases: [
        ...[
          "*/*",
          "application/*, text/*;q=0.001",
          "APPLICATION/JSON, Text/Event-Stream; charset=utf-8",
          "text/*;q=0, text/event-stream, application/json",
          "text/html, */*;Q=0.1",
          " , application/json ,, text/event-stream"
        ].map((value) => accept(value, [ok, ok])),
        ...[
          "application/json",
          "text/event-stream",
          "application/json, text/event-stream;q=0",
          "*/*, text/event-stream; q=0.000",
          "*/*;q=0",
          "application/*",
          "text/html"
        ].map((value) => accept(value, [406, ok])),
        {
          what: "a list on two lines",
          bytes: requests.post(route, { set: ["Accept: application/json"], last: ["Accept: text/event-stream"] }),
          answers: [ok, ok]
        },
        { what: "no Accept", bytes: requests.post(route, { set: ["Accept"] }), answers: [ok, ok] }
      ]
    },
    {
      clause: "RFC 9110, 9.3 · GET and DELETE",
      cases: [
        get("a GET without a session", `GET ${path} HTTP/1.1`, [400, ok]),
        get("a DELETE without a session", `DELETE ${path} HTTP/1.1`, [400, ok]),
        get("two lines of Last-Event-ID", `GET ${path} HTTP/1.1`, [400, ok], "Last-Event-ID: a", "Last-Event-ID: b"),
        get(
          "two lines of Mcp-Session-Id in a DELETE",
          `DELETE ${path} HTTP/1.1`,
          [400, ok],
          "Mcp-Session-Id: a",
          "Mcp-Session-Id: b"
        ),
        {
          what: "a GET with a body",
          bytes: `${requests.bare(`GET ${path} HTTP/1.1`, "Content-Length: 2")}{}`,
          answers: [400, ok]
        },
        {
          what: "a DELETE with chunks",
          bytes: `${requests.bare(`DELETE ${path} HTTP/1.1`, "Transfer-Encoding: chunked")}2\r\n{}\r\n0\r\n\r\n`,
          answers: [400]
        }
      ]
    },
    {
      clause: "RFC 9110, 9 · the stream of HTTP+SSE",
      cases: [
        { ...get("PUT /sse", "PUT /sse HTTP/1.1", [405, ok]), header: /^allow: GET\r$/im },
        {
          what: "POST /sse",
          bytes: requests.post(route, { line: "POST /sse HTTP/1.1" }),
          answers: [405, ok],
          header: /^allow: GET\r$/im
        },
        get("GET /sse with two Hosts", "GET /sse HTTP/1.1", [400, ok], "Host: localhost"),
        get("GET /sse for another origin", "GET /sse HTTP/1.1", [403, ok], "Origin: https://evil.example")
      ]
    }
  ]
}
