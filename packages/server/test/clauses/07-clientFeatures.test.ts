/** Requests for input from the client (client features; multi round-trip requests), over every transport. */
import { expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Elicitation from "@skein/server/Elicitation"
import * as Roots from "@skein/server/Roots"
import * as Sampling from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as kit from "../kit.ts"
import * as transports from "./transports.ts"

const sample = Effect.map(Sampling.createMessage({ messages: "Who?", maxTokens: 10 }), Sampling.text)
const roots = Effect.map(Roots.list(), (roots) => roots.map(({ uri }) => uri).join())
const form = Effect.map(
  Elicitation.accepted(Elicitation.form("How many?", { people: Schema.Int })),
  ({ people }) => `${people}`
)
const server = kit.server(
  Tool.layer(Tool.make("sample"), () => sample),
  Tool.layer(Tool.make("roots"), () => roots),
  Tool.layer(Tool.make("form"), () => form),
  Tool.layer(
    Tool.make("both"),
    () => Effect.map(Effect.all([sample, roots], { concurrency: "unbounded" }), (all) => all.join())
  )
)

const answers: { readonly [method: string]: kit.Json } = {
  "sampling/createMessage": { role: "assistant", content: { type: "text", text: "me" }, model: "m" },
  "roots/list": { roots: [{ uri: "file:///home" }] },
  "elicitation/create": { action: "accept", content: { people: 3 } }
}

const options = (revision: Revision.Revision): transports.Options => ({
  capabilities: { sampling: {}, roots: {}, ...(revision >= "2025-06-18" ? { elicitation: {} } : undefined) },
  answer: ({ method }) => answers[method]
})

for (const [{ connect, name }, revision] of transports.each) {
  it.live(`${revision} · ${name} · requests sampling, roots and forms if the revision has them, also at once`, () =>
    Effect.gen(function*() {
      const has = options(revision)
      const client = yield* connect(server, revision, has)
      const call = (tool: string) =>
        Effect.map(transports.complete(client, "tools/call", { name: tool }, has), ({ result }) => [
          result.isError ?? false,
          result.content[0].text
        ])
      expect(yield* call("sample")).toEqual([false, "me"])
      expect(yield* call("roots")).toEqual([false, "file:///home"])
      expect(yield* call("both")).toEqual([false, "me,file:///home"])
      expect((yield* call("form"))[0]).toBe(revision < "2025-06-18")
    }))

  it.live(`${revision} · ${name} · servers MUST NOT send requests for capabilities that the client has not declared`, () =>
    Effect.gen(function*() {
      const client = yield* connect(server, revision)
      for (const tool of ["sample", "roots", "form"]) {
        const { error, result } = yield* client.request("tools/call", { name: tool })
        if (Revision.era(revision) === "session") {
          expect(result).toMatchObject({ isError: true })
        } else {
          // "the server MUST return a MissingRequiredClientCapabilityError whose data.requiredCapabilities lists them"
          expect(error).toMatchObject({ code: -32021, data: { requiredCapabilities: expect.any(Object) } })
        }
      }
      expect(client.received).toEqual([])
    }))
}
