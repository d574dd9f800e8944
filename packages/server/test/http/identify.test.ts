/**
 * An effect of the application finds the principal. It is interrupted when the client no longer waits for the response.
 */
import { describe, expect, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as WebHttp from "@skein/server/WebHttp"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
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
