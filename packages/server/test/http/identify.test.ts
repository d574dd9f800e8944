/**
 * An effect of the application finds the principal. It is interrupted when the client no longer waits for the response.
 */
import { describe, expect, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as Http from "@skein/server/Http"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Principal from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import * as WebHttp from "@skein/server/WebHttp"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import { createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { modern } from "./kit.ts"

const { body, headers } = modern("tools/call", { name: "t" })
const init = { method: "POST", headers: headers as Record<string, string>, body: JSON.stringify(body) }

/** A server, and a search for the principal that never ends. */
const make = () => {
  const logged: Array<string> = []
  const [begun, interrupted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const principal = () =>
    Effect.callback<undefined>(() => {
      begun.resolve()
      return Effect.sync(() => interrupted.resolve())
    })
  const logger = Logger.make(({ message }) => void logged.push(String(message)))
  const server = McpServer.layer(
    { name: "mounted", version: "1" },
    Tool.layer(Tool.make("t"), () => Effect.succeed("t"))
  ).pipe(Layer.provide(Logger.layer([logger])))
  return { begun: begun.promise, logged, interrupted: interrupted.promise, principal, server }
}

describe("a client that disconnects before its principal is known", () => {
  it("interrupts the principal's effect behind the web-standard adapter", async () => {
    const { begun, logged, interrupted, principal, server } = make()
    const { close, handler } = WebHttp.mount(server, { principal })
    const client = new AbortController()
    const answer = handler(new Request("http://localhost/mcp", { ...init, signal: client.signal }))
    await begun
    client.abort()
    await interrupted
    expect((await answer).status).toBe(499)
    expect(logged).toEqual([])
    await close()
  })

  it("interrupts the principal's effect behind node:http", async () => {
    const { begun, logged, interrupted, principal, server } = make()
    const { close, handler } = await NodeHttp.mount(server, { principal })
    const host = createServer((request, response) => handler(request, response))
    await new Promise<void>((resolve) => void host.listen(0, "127.0.0.1", resolve))
    const client = new AbortController()
    const url = `http://127.0.0.1:${(host.address() as AddressInfo).port}/mcp`
    const answer = fetch(url, { ...init, signal: client.signal })
    await begun
    client.abort()
    await expect(answer).rejects.toThrow("aborted")
    await interrupted
    expect(logged).toEqual([])
    await close()
    host.close()
    host.closeAllConnections()
  })
})

describe("the principal of a request", () => {
  const asked = (search: () => undefined) => ({ principal: search, allowedOrigins: ["https://app.example"] })

  const foreign: ReadonlyArray<readonly [name: string, status: number, init: RequestInit, path: string]> = [
    ["a host that is not served", 403, { ...init, headers: { ...init.headers, host: "evil.example" } }, "/mcp"],
    [
      "an origin that is not served",
      403,
      { ...init, headers: { ...init.headers, origin: "https://x.example" } },
      "/mcp"
    ],
    ["another path", 404, init, "/else"],
    ["another verb", 405, { method: "PUT" }, "/mcp"]
  ]

  for (const [name, status, sent, path] of foreign) {
    it(`does not run the principal's effect before the guards have passed: ${name}`, async () => {
      let searches = 0
      const options = asked(() => void searches++)
      const web = WebHttp.mount(make().server, options)
      const refused = await web.handler(new Request(`http://localhost${path}`, sent))
      expect([refused.status, searches]).toEqual([status, 0])
      expect([(await web.handler(new Request("http://localhost/mcp", init))).status, searches]).toEqual([200, 1])
      await web.close()

      const { close, handler } = await NodeHttp.mount(make().server, options)
      const host = createServer((request, response) => handler(request, response))
      await new Promise<void>((resolve) => void host.listen(0, "127.0.0.1", resolve))
      const port = (host.address() as AddressInfo).port
      const send = (path: string, { body, headers = {}, method }: RequestInit) =>
        new Promise<number>((resolve) => {
          const sent = request(
            { port, path, method, headers: { connection: "close", ...headers as object } },
            (response) => {
              response.resume()
              response.on("end", () => resolve(response.statusCode!))
            }
          )
          sent.end(body)
        })
      expect([await send(path, sent), searches]).toEqual([status, 1])
      expect([await send("/mcp", init), searches]).toEqual([200, 2])
      await close()
      host.close()
    })
  }
})

describe("a principal by a value, a promise or an effect", () => {
  const user = { id: "ada" }
  const refused = () => new Http.Refusal({ status: 401, message: "Unauthorized" })
  const thrown = (error: unknown) => () => {
    throw error
  }
  const later = <A>(settled: () => A) => async (): Promise<A> => {
    await new Promise((resolve) => setImmediate(resolve))
    return settled()
  }
  class Query<A> extends Promise<A> {}
  const invalid = (found: string) => `InvalidPrincipal: ${mustBe}; found ${found}`
  const mustBe = "A principal must be undefined or an object with a non-empty string id"

  /** The result of a function, the answer of the tool or the status, and the log line. */
  const cases: ReadonlyArray<readonly [name: string, find: () => unknown, answer: string | number, logged?: string]> = [
    ["a value", () => user, "ada"],
    ["no value", () => undefined, "anonymous"],
    ["a promise", later(() => user), "ada"],
    ["a promise of no value", later(() => undefined), "anonymous"],
    ["a query that is a promise of another class", () => new Query((resolve) => resolve(user)), "ada"],
    ["an effect", () => Effect.andThen(Effect.yieldNow, Effect.succeed(user)), "ada"],
    ["a thrown refusal", thrown(refused()), 401],
    ["a rejected refusal", later(thrown(refused())), 401],
    ["a failed refusal", () => Effect.fail(refused()), 401],
    ["a thrown error", thrown(new Error("no database")), 500, "Error: no database"],
    ["a rejection", later(thrown(new Error("no database"))), 500, "Error: no database"],
    ["a rejection without an error", later(thrown(undefined)), 500, "undefined"],
    ["a failure", () => Effect.fail("no database"), 500, "no database"],
    ["null", () => null, 500, invalid("null")],
    ["a text", () => "ada", 500, invalid("a string")],
    ["an object without an id", () => ({ name: "ada" }), 500, invalid("an object without one")],
    ["an empty id", later(() => ({ id: "" })), 500, invalid("an object without one")],
    ["an id that is a number", () => Effect.succeed({ id: 7 }), 500, invalid("an object without one")],
    [
      "an effect of a promise that rejects",
      () => Effect.succeed<unknown>(later(thrown(new Error("late")))()),
      500,
      invalid("a promise")
    ],
    ["a promise of an effect", later(() => Effect.succeed(user)), 500, invalid("an effect")]
  ]

  const whoami = Tool.layer(
    Tool.make("t"),
    () => Effect.map(Principal.current, Option.match({ onNone: () => "anonymous", onSome: ({ id }) => id }))
  )

  for (const [name, find, expected, reason] of cases) {
    it(`${typeof expected === "number" ? `responds ${expected} to` : "accepts"} ${name}`, async () => {
      const logged: Array<string> = []
      const logger = Logger.make(({ cause, message }) => void logged.push(`${String(message)} ${Cause.pretty(cause)}`))
      const server = McpServer.layer({ name: "mounted", version: "1" }, whoami).pipe(
        Layer.provide(Logger.layer([logger]))
      )
      const principal = find as Http.FindPrincipal<Request>
      const { close, handler } = WebHttp.mount(server, { principal })
      const response = await handler(new Request("http://localhost/mcp", init))
      const answer = response.status === 200
        ? (await response.json() as { result: { content: [{ text: string }] } }).result.content[0].text
        : response.status
      await close()
      expect(answer).toBe(expected)
      expect(logged).toHaveLength(reason === undefined ? 0 : 1)
      expect(logged[0] ?? "").toContain(reason ?? "")
    })
  }

  it("checks the principal that the application passes with a request, and awaits its promise", async () => {
    const { close, handler } = WebHttp.mount(McpServer.layer({ name: "mounted", version: "1" }, whoami))
    const call = (principal: unknown) => handler(new Request("http://localhost/mcp", init), { principal } as object)
    expect((await call({ name: "ada" })).status).toBe(500)
    expect((await call(Promise.reject(new Error("late")))).status).toBe(500)
    expect(await (await call(Promise.resolve(user))).text()).toContain("\"ada\"")
    await close()
  })

  it("responds 500 to a protection that returns a value without an id, in JavaScript", async () => {
    const protection = { identify: async () => ({ name: "ada" }) } as unknown as Http.Protection
    const { close, handler } = WebHttp.mount(McpServer.layer({ name: "mounted", version: "1" }, whoami), { protection })
    expect((await handler(new Request("http://localhost/mcp", init))).status).toBe(500)
    await close()
  })
})
