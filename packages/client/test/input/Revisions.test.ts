/** The same host services in all five revisions against a Skein server. */
import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import { once } from "@skein/server/Once"
import * as Ask from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as RootsOf from "@skein/server/Roots"
import * as Model from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Client from "../../src/Client.ts"
import { connect, Host, type Json } from "./kit.ts"

const size = Ask.make({
  people: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 8 })),
  smoking: Schema.Boolean.pipe(Ask.withDefault(true))
})
const form = Effect.map(Ask.accepted(Ask.form("How many?", size)), ({ people, smoking }) => `${people} ${smoking}`)
const several = Effect.map(
  Ask.accepted(Ask.form("Which?", { toppings: Ask.choices({ h: "Ham", o: "Olives" }) })),
  ({ toppings }) => toppings.join("+")
)
const visit = Effect.flatMap(
  Ask.accepted(Ask.url("Pay, please", "https://example.com/pay")),
  ({ complete }) => Effect.as(complete, "paid")
)
const sample = Effect.map(Model.createMessage({ messages: "Capital of France?", maxTokens: 10 }), Model.text)
const weather = { name: "weather", inputSchema: { type: "object" as const } }
const loop = Effect.gen(function*() {
  const messages: Array<Model.Message> = [Model.user("Weather in Paris and London?")]
  for (;;) {
    const answer = yield* Model.createMessage({
      messages,
      tools: [weather],
      toolChoice: { mode: "auto" },
      maxTokens: 9
    })
    const uses = Model.toolUses(answer)
    if (uses.length === 0) return Model.text(answer)
    messages.push(
      Model.toMessage(answer),
      Model.user(uses.map((use) => Model.toolResult(use, `${use.input["city"]}: 18`)))
    )
  }
})
const roots = Effect.map(RootsOf.list(), (roots) => roots.map(({ name, uri }) => `${name} ${uri}`).join())
const mixed = Effect.gen(function*() {
  const [a, b] = yield* Effect.all([sample, roots], { concurrency: "unbounded" })
  const n = yield* once("n", Schema.Int, Effect.succeed(7))
  return `${a}, ${b}, ${n}, ${yield* sample}`
})

const handlers = { form, several, visit, sample, loop, roots, mixed }
type Name = keyof typeof handlers

const since: { readonly [name in Name]: Revision.Revision } = {
  form: "2025-06-18",
  several: "2025-11-25",
  visit: "2025-11-25",
  sample: "2024-11-05",
  loop: "2025-11-25",
  roots: "2024-11-05",
  mixed: "2024-11-05"
}

const results: { readonly [name in Name]: string } = {
  form: "3 true",
  several: "h+o",
  visit: "paid",
  sample: "re: Capital of France?",
  loop: "1 Paris: 18; 2 London: 18",
  roots: "home file:///home",
  mixed: "re: Capital of France?, home file:///home, 7, re: Capital of France?"
}

const names = Object.keys(handlers) as ReadonlyArray<Name>

const server = McpServer.layer(
  { name: "asking", version: "1.2.3" },
  ...names.flatMap((name) => [
    Tool.layer(Tool.make(name), () => handlers[name]),
    Prompt.layer(Prompt.make(name), () => handlers[name]),
    Resource.layer(Resource.make(`test://${name}`), handlers[name])
  ])
)

const client = (host: Host, revision: Revision.Revision) =>
  Effect.gen(function*() {
    const { serve } = Context.get(yield* Layer.build(server), McpServer.McpServer)
    return yield* connect(InMemoryTransport.transport(serve), host.layer, { revisions: [revision] })
  })

const doors: { readonly [method: string]: (client: Client.Client, name: Name) => Effect.Effect<string, unknown> } = {
  "tools/call": (client, name) =>
    Effect.map(client.callTool(name), ({ content }) => content.map((block: Json) => block.text).join()),
  "prompts/get": (client, name) =>
    Effect.map(client.getPrompt(name), ({ messages }) => (messages[0]!.content as Json).text),
  "resources/read": (client, name) =>
    Effect.map(client.readResource(`test://${name}`), ({ contents }) => (contents[0] as Json).text)
}

for (const revision of Revision.all) {
  describe(revision, () => {
    for (const [method, through] of Object.entries(doors)) {
      it.effect(`${method} · one host answers every input request that the revision has`, () =>
        Effect.gen(function*() {
          const host = new Host()
          const mcp = yield* client(host, revision)
          for (const name of names.filter((name) => revision >= since[name])) {
            host.seen.length = 0
            assert.strictEqual(yield* through(mcp, name), results[name], name)
            for (const { asker } of host.seen) {
              assert.deepInclude(asker.info, { name: "asking", version: "1.2.3" })
              assert.strictEqual(asker.revision, revision)
              assert.strictEqual(asker.method, revision === "2026-07-28" ? method : undefined)
            }
          }
        }))
    }

    it.effect("declares and answers exactly the services that the host provides", () =>
      Effect.gen(function*() {
        const host = new Host()
        const parts = { sample: host.sampling, roots: Layer.orDie(host.roots), form: host.elicitation }
        for (const [only, layer] of Object.entries(parts)) {
          const asked = Effect.gen(function*() {
            const { serve } = yield* McpServer.McpServer
            const mcp = yield* connect(InMemoryTransport.transport(serve), layer as Layer.Layer<never>, {
              revisions: [revision]
            })
            const answered: Array<string> = []
            for (const name of ["sample", "roots", "form"] as const) {
              const exit = yield* Effect.exit(mcp.callTool(name))
              if (exit._tag === "Success" && exit.value.isError !== true) answered.push(name)
            }
            return answered
          })
          const answered = yield* Effect.provide(asked, server)
          assert.deepStrictEqual(answered, only === "form" && revision < "2025-06-18" ? [] : [only])
        }
      }))
  })
}
