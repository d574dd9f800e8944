/** Input requests of middleware. */
import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import { toMcpError } from "@skein/server/InputError"
import * as Elicitation from "@skein/server/Elicitation"
import * as Middleware from "@skein/server/Middleware"
import { once } from "@skein/server/Once"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as base from "../kit.ts"
import * as kit from "./kit.ts"

const form = Elicitation.make({ sure: Schema.Boolean })

/** Nothing runs without approval, regardless of the name in `about`. The record is written once per request. */
const approval = (about: ReadonlyArray<string>, log: Array<string>) =>
  Middleware.layer((next) => (exchange) =>
    !about.includes(exchange.method) ? next(exchange) : Effect.gen(function*() {
      yield* once("log", Schema.Void, Effect.sync(() => void log.push(exchange.method)))
      const { sure } = yield* Elicitation.accepted(Elicitation.form(`May ${exchange.method} run?`, form))
      if (!sure) return yield* Effect.fail(McpError.invalidRequest("Not approved"))
    }).pipe(
      Effect.mapError((error) => McpError.isMcpError(error) ? error : toMcpError(error)),
      Effect.andThen(() => next(exchange))
    )
  )

const server = (about: ReadonlyArray<string>, log: Array<string> = []) =>
  base.server(
    approval(about, log),
    Tool.layer(Tool.make("t"), () =>
      Effect.map(Elicitation.accepted(Elicitation.form("And?", { text: Schema.String })), ({ text }) => text))
  )

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(revision, () => {
    it.effect("a middleware may request input, before a handler that requests input", () =>
      Effect.gen(function*() {
        for (const sure of [true, false]) {
          const log: Array<string> = []
          const client = yield* kit.client(server(["tools/call"], log), {
            revision,
            answer: ({ params }) => kit.accept(params.message === "And?" ? { text: "done" } : { sure })
          })
          expect(yield* client.call("t")).toBe(sure ? "done" : "-32600 Not approved")
          expect(client.asked.map(({ params }) => params.message)).toEqual(
            sure ? ["May tools/call run?", "And?"] : ["May tools/call run?"]
          )
          expect(log).toEqual(["tools/call"])
        }
      }))
  })
}

describe("2025-11-25", () => {
  it.effect("the server SHOULD NOT send requests before the session is initialized: input requests during initialize fail", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(server(["initialize"]), {
        revision: "2025-11-25",
        answer: () => kit.accept({ sure: true })
      })
      expect(client.received[0].error.message).toMatch(
        /^requests to the client are not available while handling initialize in .*: elicitation\/create was not sent$/
      )
      expect(client.asked).toEqual([])
    }))
})

describe("2026-07-28", () => {
  it.effect("servers MUST NOT send InputRequiredResult on any other request: input requests during these fail at once", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const client = yield* kit.client(server(["tools/list", "server/discover"], log), {
        revision: "2026-07-28",
        answer: () => kit.accept({ sure: true })
      })
      for (const method of ["tools/list", "server/discover"]) {
        const { error } = yield* client.once(method)
        expect(error.message).toBe(
          `requests to the client are not available while handling ${method} in 2026-07-28: elicitation/create was not sent`
        )
      }
      expect(client.asked).toEqual([])
      expect(log).toEqual(["tools/list", "server/discover"])
    }))
})
