import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { connect, MockApi, operation, textOf } from "./kit.ts"

const big = "1915883588174806058"
const answers = (text: string) =>
  new MockApi(() => new Response(text, { headers: { "content-type": "application/json" } }))
const document = operation("/{id}", "get", {
  parameters: [{ name: "id", in: "path", schema: { type: "integer" } }],
  responses: { 200: { content: { "application/json": { schema: { type: "object" } } } } }
})

describe("a whole number beyond 2^53", () => {
  it.effect.each([`{"id":${big}}`, `{"list":[{"id":-${big}}]}`, "{\"id\":1e400}"])(
    "in an answer is exact in the text, without structured content: %s",
    (text) =>
      Effect.gen(function*() {
        const client = yield* connect(document, {}, answers(text))
        const result = yield* client.callTool("it", { id: 1 })
        expect(result.structuredContent).toBeUndefined()
        expect(textOf(result)).toContain(text)
        expect(textOf(result)).toContain("is exact in the text only")
      })
  )

  it.effect("in an answer leaves the text in the structured content of an output schema", () =>
    Effect.gen(function*() {
      const client = yield* connect(document, { outputSchemas: true }, answers(`{"id":${big}}`))
      const { structuredContent } = yield* client.callTool("it", { id: 1 })
      expect(structuredContent).toEqual({ status: 200, text: `{"id":${big}}` })
    }))

  it.effect.each([
    "{\"id\":9007199254740991}",
    "{\"id\":9007199254740992}",
    "{\"x\":0.1,\"y\":1e21,\"z\":\"1915883588174806058\"}"
  ])(
    "does not concern an answer whose numbers are exact: %s",
    (text) =>
      Effect.gen(function*() {
        const client = yield* connect(document, {}, answers(text))
        const result = yield* client.callTool("it", { id: 1 })
        expect(result.structuredContent).toEqual(JSON.parse(text))
        expect(textOf(result)).toBe(text)
      })
  )

  it.effect("in an argument is refused, and no request is made", () =>
    Effect.gen(function*() {
      const api = answers("{}")
      const client = yield* connect(document, {}, api)
      const result = yield* client.callTool("it", { id: Number(big) })
      expect(result.isError).toBe(true)
      expect(textOf(result)).toContain("The argument \"id\" has a whole number beyond 9007199254740991")
      expect(api.seen).toEqual([])
    }))

  it.effect("in a URI is refused, and no request is made", () =>
    Effect.gen(function*() {
      const api = answers("{}")
      const client = yield* connect(document, { routeMap: () => "template" }, api)
      const error = yield* Effect.flip(client.readResource(`openapi://pets/${big}`))
      expect(error.message).toContain("has a whole number beyond 9007199254740991")
      expect(api.seen).toEqual([])
    }))
})
