/**
 * The same handlers, unchanged, in all five revisions: they request all input that a revision has, and the rest is
 * refused.
 */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Elicitation from "@skein/server/Elicitation"
import { once } from "@skein/server/Once"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Roots from "@skein/server/Roots"
import * as Sampling from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as base from "../kit.ts"
import * as kit from "./kit.ts"

const size = Elicitation.make({
  people: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 8 })).annotate({ title: "People" }),
  smoking: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false)))
})

const form = Effect.map(
  Elicitation.accepted(Elicitation.form("How many are you?", size)),
  ({ people, smoking }) => `${people} ${smoking}`
)
const several = Effect.map(
  Elicitation.accepted(Elicitation.form("Which?", { toppings: Elicitation.choices({ h: "Ham", o: "Olives" }) })),
  ({ toppings }) => toppings.join("+")
)
const visit = Effect.flatMap(
  Elicitation.accepted(Elicitation.url("Pay, please", "https://example.com/pay")),
  ({ complete }) => Effect.as(complete, "paid")
)
const sample = Effect.map(Sampling.createMessage({ messages: "Capital of France?", maxTokens: 10 }), Sampling.text)
const weather = { name: "weather", inputSchema: { type: "object" as const } }
const loop = Effect.gen(function*() {
  const messages: Array<Sampling.Message> = [Sampling.user("Weather in Paris and London?")]
  for (;;) {
    const answer = yield* Sampling.createMessage({
      messages,
      tools: [weather],
      toolChoice: { mode: "auto" },
      maxTokens: 9
    })
    const uses = Sampling.toolUses(answer)
    if (uses.length === 0) return Sampling.text(answer)
    messages.push(
      Sampling.toMessage(answer),
      Sampling.user(uses.map((use) => Sampling.toolResult(use, `${use.input["city"]}: 18`)))
    )
  }
})
const context = Effect.map(
  Sampling.createMessage({ messages: "Where am I?", maxTokens: 10, includeContext: "thisServer" }),
  Sampling.text
)
const roots = Effect.map(Roots.list(), (roots) => roots.map(({ name, uri }) => `${name} ${uri}`).join())

/** Requests in parallel, then in sequence, with a side effect in between. */
const mixed = (runs: { count: number }) =>
  Effect.gen(function*() {
    const [a, b] = yield* Effect.all([sample, roots], { concurrency: "unbounded" })
    const n = yield* once("count", Schema.Int, Effect.sync(() => ++runs.count))
    const c = yield* Effect.map(Sampling.createMessage({ messages: `After ${n}?`, maxTokens: 1 }), Sampling.text)
    return `${a}, ${b}, ${n}, ${c}`
  })

const handlers = { form, several, visit, sample, loop, context, roots }

const server = (runs = { count: 0 }) =>
  base.server(
    ...Object.entries({ ...handlers, mixed: mixed(runs) }).flatMap(([name, handler]) => [
      Tool.layer(Tool.make(name), () => handler),
      Prompt.layer(Prompt.make(name), () => handler),
      Resource.layer(Resource.make(`test://${name}`), handler),
      ResourceTemplate.layer(ResourceTemplate.make(`test://${name}/{id}`, { name }), ({ id }) =>
        Effect.map(handler, (text) => `${id} ${text}`))
    ])
  )

/** A user, a model and a disk. */
const answer: kit.Answerer = ({ method, params }) => {
  if (method === "roots/list") return { roots: [{ uri: "file:///home", name: "home" }] }
  if (method === "elicitation/create") {
    if (params.mode === "url") return { action: "accept" }
    const fields = Object.keys(params.requestedSchema.properties)
    return kit.accept(fields.includes("people") ? { people: 3 } : { toppings: ["h", "o"] })
  }
  const sampled = (text: string) => ({
    role: "assistant",
    model: "m",
    content: { type: "text", text },
    stopReason: "endTurn"
  })
  if (params.tools === undefined) return sampled(`re: ${params.messages[0].content.text}`)
  if (params.messages.length > 1) {
    const results = params.messages[2].content.map((block: kit.Json) => `${block.toolUseId} ${block.content[0].text}`)
    return sampled(results.join("; "))
  }
  const use = (id: string, city: string) => ({ type: "tool_use", id, name: "weather", input: { city } })
  return { role: "assistant", model: "m", content: [use("1", "Paris"), use("2", "London")], stopReason: "toolUse" }
}

const since: { readonly [name in keyof typeof handlers]: Revision.Revision } = {
  form: "2025-06-18",
  several: "2025-11-25",
  visit: "2025-11-25",
  sample: "2024-11-05",
  loop: "2025-11-25",
  context: "2024-11-05",
  roots: "2024-11-05"
}

const results = {
  form: "3 false",
  several: "h+o",
  visit: "paid",
  sample: "re: Capital of France?",
  loop: "1 Paris: 18; 2 London: 18",
  context: "re: Where am I?",
  roots: "home file:///home"
}

/** The kinds of handlers, with the text of their result or the error. */
const kinds: { readonly [name: string]: (client: kit.Client, name: string) => Effect.Effect<string> } = {
  tool: (client, name) => client.call(name),
  prompt: (client, name) =>
    Effect.map(
      client.request("prompts/get", { name }),
      ({ error, result }) => error === undefined ? result.messages[0].content.text : `${error.code} ${error.message}`
    ),
  resource: (client, name) =>
    Effect.map(
      client.request("resources/read", { uri: `test://${name}` }),
      ({ error, result }) => error === undefined ? result.contents[0].text : `${error.code} ${error.message}`
    ),
  template: (client, name) =>
    Effect.map(
      client.request("resources/read", { uri: `test://${name}/7` }),
      ({ error, result }) => error === undefined ? result.contents[0].text.slice(2) : `${error.code} ${error.message}`
    )
}

for (const revision of Revision.all) {
  describe(revision, () => {
    for (const [kind, read] of Object.entries(kinds)) {
      it.effect(`a ${kind} requests every input that the revision has, with one handler`, () =>
        Effect.gen(function*() {
          const client = yield* kit.client(server(), { revision, answer })
          for (const [name, first] of Object.entries(since) as Array<[keyof typeof handlers, Revision.Revision]>) {
            const before = client.asked.length
            const outcome = yield* read(client, name)
            if (revision >= first) {
              expect([name, outcome]).toEqual([name, results[name]])
              expect(client.asked.length).toBe(before + (name === "loop" ? 2 : 1))
            } else {
              // A failed tool reports the failure in its result; a prompt or a resource responds with a JSON-RPC error.
              expect(outcome).toMatch(kind === "tool" ? /^failed: / : /^-32603 /)
              expect(outcome).toContain(revision)
              expect(client.asked.length).toBe(before)
            }
          }
        }))
    }

    it.effect("runs a side effect between input requests once", () =>
      Effect.gen(function*() {
        const runs = { count: 0 }
        const client = yield* kit.client(server(runs), { revision, answer })
        expect(yield* client.call("mixed")).toBe("re: Capital of France?, home file:///home, 1, re: After 1?")
        expect(runs.count).toBe(1)
        expect(client.asked.map(({ method }) => method).toSorted()).toEqual([
          "roots/list",
          "sampling/createMessage",
          "sampling/createMessage"
        ])
      }))

    it.effect("MUST NOT send a request that the client has not declared: fails immediately and names the capability", () =>
      Effect.gen(function*() {
        const client = yield* kit.client(server(), { revision, answer, capabilities: {} })
        const modern = revision === "2026-07-28"
        const wanted: { readonly [name: string]: kit.Json } = {
          ...(revision >= "2025-11-25"
            ? {
              form: { elicitation: { form: {} } },
              visit: { elicitation: { url: {} } },
              several: { elicitation: { form: {} } }
            }
            : revision === "2025-06-18"
            ? { form: { elicitation: {} } }
            : {}),
          sample: { sampling: {} },
          context: { sampling: revision >= "2025-11-25" ? { context: {} } : {} },
          roots: { roots: {} }
        }
        for (const [name, requiredCapabilities] of Object.entries(wanted)) {
          const { error, result } = yield* client.request("tools/call", { name })
          if (modern) expect(error).toMatchObject({ code: -32021, data: { requiredCapabilities } })
          else expect(result).toMatchObject({ isError: true })
          const prompt = yield* client.request("prompts/get", { name })
          expect(prompt.error).toMatchObject({ code: modern ? -32021 : -32600, data: { requiredCapabilities } })
        }
        expect(client.asked).toEqual([])
      }))
  })
}

describe("2025-11-25", () => {
  it.effect("notifications/elicitation/complete MUST include the elicitationId of the original request", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(server(), { revision: "2025-11-25", answer })
      expect(yield* client.call("visit")).toBe("paid")
      const { elicitationId } = client.asked[0]!.params
      const notice = client.notices("notifications/elicitation/complete")
      expect(notice.map(({ params }) => params)).toEqual([{ elicitationId }])
      kit.conform("2025-11-25", "ElicitationCompleteNotification", notice[0])
    }))
})

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(revision, () => {
    it.effect("reads an empty elicitation capability as forms, and MUST NOT request an undeclared mode", () =>
      Effect.gen(function*() {
        const ask = function*(elicitation: kit.Json, name: string) {
          const client = yield* kit.client(server(), { revision, answer, capabilities: { elicitation } })
          yield* client.request("tools/call", { name })
          return client.asked.length
        }
        expect(yield* ask({}, "form")).toBe(1)
        expect(yield* ask({}, "visit")).toBe(0)
        expect(yield* ask({ url: {} }, "form")).toBe(0)
        expect(yield* ask({ url: {} }, "visit")).toBe(1)
        expect(yield* ask({ form: {} }, "visit")).toBe(0)
      }))

    it.effect("MUST NOT send tool-enabled sampling requests to clients without sampling.tools", () =>
      Effect.gen(function*() {
        const client = yield* kit.client(server(), { revision, answer, capabilities: { sampling: {} } })
        expect(yield* client.call("sample")).toBe(results.sample)
        const { error, result } = yield* client.request("tools/call", { name: "loop" })
        if (revision === "2025-11-25") expect(result.isError).toBe(true)
        else expect(error.data).toEqual({ requiredCapabilities: { sampling: { tools: {} } } })
        expect(client.asked).toHaveLength(1)
      }))
  })
}
