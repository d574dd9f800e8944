import { describe, expect, it } from "@effect/vitest"
import * as WebHttp from "@skein/server/WebHttp"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as fixtures from "./fixtures.ts"

/** Sends requests, each with a method and headers, and returns the error messages and the log. */
const ask = (...requests: ReadonlyArray<Record<string, string>>) =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ logLevel, message }) => void lines.push(`${logLevel} ${message}`))
    const answers = yield* Effect.gen(function*() {
      const handler = yield* WebHttp.handler({ allowedHosts: ["mcp.example.com"] })
      return yield* Effect.forEach(requests, ({ method = "POST", ...headers }) =>
        Effect.promise(async () => {
          const response = await handler(new Request("http://mcp.example.com/mcp", { method, headers }))
          const { error } = await response.json() as { readonly error: { readonly message: string } }
          return [response.status, error.message] as const
        }))
    }).pipe(
      Effect.provide(Layer.provideMerge(fixtures.server(fixtures.echo), Logger.layer([logger]))),
      Effect.provideService(References.MinimumLogLevel, "Debug"),
      Effect.scoped
    )
    return { answers, lines }
  })

describe("a request for another host name, or from another origin", () => {
  const other = { host: "mcp.acme.com" }
  const host = "Forbidden: the Host of this request is not among the allowedHosts of the server"
  const origin = "Forbidden: the Origin of this request is not among the allowedOrigins of the server"

  it.effect("responds with the option that would allow the request, and without the header's value", () =>
    Effect.gen(function*() {
      const { answers } = yield* ask(other, { host: "mcp.example.com", origin: "https://app.acme.com" })
      expect(answers).toEqual([[403, host], [403, origin]])
    }))

  it.effect("logs one warning for each host and origin, because a refused client sees only a 403", () =>
    Effect.gen(function*() {
      const page = { host: "mcp.example.com", origin: "https://app.acme.com" }
      const { lines } = yield* ask(other, { host: "scanner" }, page, other)
      const what = (header: string) => `HTTP: refused a request with the ${header}`
      expect(lines).toEqual([
        `Warn ${
          what("Host")
        } mcp.acme.com, which is not among the allowedHosts of the server: add it there to allow it`,
        `Warn ${what("Host")} scanner, which is not among the allowedHosts of the server: add it there to allow it`,
        `Warn ${
          what("Origin")
        } https://app.acme.com, which is not among the allowedOrigins of the server: add it there to allow it`,
        `Debug ${
          what("Host")
        } mcp.acme.com, which is not among the allowedHosts of the server: add it there to allow it`
      ])
    }))

  it.effect("logs at most 16 warnings", () =>
    Effect.gen(function*() {
      const { lines } = yield* ask(...Array.from({ length: 40 }, (_, n) => ({ host: `scanner${n}` })))
      expect(lines.filter((line) => line.startsWith("Warn "))).toHaveLength(16)
      expect(lines).toHaveLength(40)
    }))

  it.effect("logs how to serve a web page whose preflight is refused, once for each origin", () =>
    Effect.gen(function*() {
      const page = (port: number) => ({
        host: "mcp.example.com",
        method: "OPTIONS",
        origin: `http://localhost:${port}`,
        "access-control-request-method": "POST"
      })
      const { answers, lines } = yield* ask(page(6274), page(6274), page(5173))
      expect(answers.map(([status]) => status)).toEqual([405, 405, 405])
      const text = (port: number) =>
        `HTTP: refused a request of a web page of http://localhost:${port}: ` +
        "set the option cors (Cors.make()) to let pages of allowedOrigins call the server"
      expect(lines).toEqual([`Warn ${text(6274)}`, `Debug ${text(6274)}`, `Warn ${text(5173)}`])
    }))

  it.effect("escapes line breaks of a header in the log", () =>
    Effect.gen(function*() {
      const { lines } = yield* ask({ origin: "a b\u001b[2J" }, { host: "x".repeat(1000) })
      expect(lines.join("")).toContain("\"a b")
      expect(lines.join("")).not.toContain("\u001b")
      expect(lines[1]!.length).toBeLessThan(300)
    }))
})

describe("a request that is refused before it is handled", () => {
  it.effect("logs a refused request at level Debug, because middleware does not see it", () =>
    Effect.gen(function*() {
      const host = "mcp.example.com"
      const { answers, lines } = yield* ask(
        { host },
        { host, "content-type": "application/json", accept: "text/html" }
      )
      expect(answers.map(([status]) => status)).toEqual([415, 406])
      expect(lines).toEqual([
        "Debug HTTP: refused a request with 415, \"Unsupported Media Type: the body is application/json\"",
        "Debug HTTP: refused a request with 406, \"Not Acceptable: accept both application/json and text/event-stream\""
      ])
    }))
})
