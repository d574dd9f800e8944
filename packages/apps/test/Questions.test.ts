/** `Approval` and `Choice`: what a client, a page and a user without pages get. */
import { describe, expect, it } from "@effect/vitest"
import * as Approval from "@skein/apps/Approval"
import * as AppHost from "@skein/apps/AppHost"
import * as Choice from "@skein/apps/Choice"
import * as UiMeta from "@skein/apps/UiMeta"
import * as Client from "@skein/client/Client"
import * as ClientElicitation from "@skein/client/Elicitation"
import type { Origin } from "@skein/runtime/Connection"
import { AsyncServer } from "@skein/server/AsyncServer"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import { McpRequest } from "@skein/server/McpRequest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import * as openQuestions from "../src/server/openQuestions.ts"
import * as kit from "./kit.ts"

const key = "io.github.skein-mcp/question"

const deploy = (bounds: Approval.Bounds = {}) =>
  Approval.make("deploy", { description: "Deploys a version", input: { version: Schema.String }, ...bounds })

const deployed = (bounds: Approval.Bounds = {}, seen: Array<unknown> = []) =>
  Approval.layer(deploy(bounds), {
    ask: ({ version }) => Effect.succeed({ title: `Deploy ${version}?`, details: "To production", approve: "Deploy" }),
    handle: (answered) =>
      Effect.sync(() => {
        seen.push(answered)
        return answered.approved ? `${answered.input.version} is deployed` : "Nothing was deployed"
      })
  })

const teas: Choice.Question = {
  title: "Which tea?",
  // Values that an object would sort.
  options: [{ value: "10", label: "Green", description: "From Uji" }, { value: "2", label: "Black" }, {
    value: "__proto__"
  }]
}

const chosen = (question: Choice.Question = teas) =>
  Choice.layer(Choice.make("tea"), {
    ask: () => Effect.succeed(question),
    handle: ({ chosen }) => Effect.succeed(`Chosen: ${chosen}`)
  })

const text = (result: kit.Json): string => result.content.map((block: kit.Json) => block.text).join("\n")

/** Calls the tool as a model, and returns the question as its page receives it. */
const ask = (client: Client.Client, tool: string, args: {} = {}) =>
  Effect.map(client.callTool(tool, args), (result) => ({ result, question: result._meta?.[key] as kit.Json }))

/** Answers as the page does, through a host. */
const answer = (client: Client.Client, { token, tool }: kit.Json, value: unknown) =>
  client.callTool(tool, { token, answer: value })

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(revision, () => {
    it.effect(`${revision} · asks on a page, and runs the handler with the answer of the page`, () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const client = yield* kit.connect({ revision }, [deployed({}, seen)])
        const tools = yield* client.listTools()
        expect(tools.map(({ name }) => name)).toEqual(["deploy", "deploy_answer"])
        expect(tools.map(UiMeta.isForModel)).toEqual([true, false])
        expect(Object.keys(tools[0]!).toSorted()).toEqual(["_meta", "description", "inputSchema", "name"])
        expect(tools.map((tool) => UiMeta.ofTool(tool).resourceUri)).toEqual(Array(2).fill("ui://skein/approval"))
        const { question, result } = yield* ask(client, "deploy", { version: "1.2" })
        expect(text(result)).toBe(
          "The user sees a page that asks \"Deploy 1.2?\". Nothing is done yet. " +
            "The answer comes in the conversation: wait for it"
        )
        expect(question).toEqual({
          title: "Deploy 1.2?",
          details: "To production",
          approve: "Deploy",
          decline: "Decline",
          tool: "deploy_answer",
          token: expect.stringMatching(/^[A-Za-z0-9]{32}$/)
        })
        // The model cannot answer: it does not read `_meta`.
        expect(JSON.stringify([result.content, result.structuredContent])).not.toContain(question.token)
        expect(seen).toEqual([])
        expect(text(yield* answer(client, question, true))).toBe("1.2 is deployed")
        expect(seen).toEqual([{ approved: true, input: { version: "1.2" } }])
        const again = yield* answer(client, question, true)
        expect([again.isError, text(again)]).toEqual([
          true,
          "This question is no longer open. It was answered already, or too much time has passed"
        ])
        const declined = yield* ask(client, "deploy", { version: "2" })
        expect(text(yield* answer(client, declined.question, false))).toBe("Nothing was deployed")
        expect(seen).toHaveLength(2)
      }))

    it.effect(`${revision} · asks with a form where the client shows no pages`, () =>
      Effect.gen(function*() {
        for (
          const [given, expected] of [
            [ClientElicitation.accept({ answer: "approve" }), "1.2 is deployed"],
            [ClientElicitation.accept({ answer: "decline" }), "Nothing was deployed"],
            [ClientElicitation.decline, "Nothing was deployed"],
            [ClientElicitation.cancel, "The user did not answer \"Deploy 1.2?\". Nothing was done"]
          ] as const
        ) {
          const forms: Array<string> = []
          const client = yield* kit.connect({ revision, extensions: {} }, [deployed()]).pipe(
            Effect.provide(ClientElicitation.layer({
              form: ({ message, requestedSchema }) => {
                forms.push(message)
                expect(requestedSchema.required).toEqual(["answer"])
                expect(requestedSchema.properties["answer"]).toMatchObject({
                  oneOf: [{ const: "approve", title: "Deploy" }, { const: "decline", title: "Decline" }]
                })
                return Effect.succeed(given)
              }
            }))
          )
          expect((yield* client.listTools()).map(({ name }) => name)).toEqual(["deploy"])
          expect(text(yield* client.callTool("deploy", { version: "1.2" }))).toBe(expected)
          expect(forms).toEqual(["Deploy 1.2?\n\nTo production"])
        }
      }))

    it.effect(`${revision} · lets the user choose with a form, in the order of the options`, () =>
      Effect.gen(function*() {
        for (
          const [given, expected] of [
            [ClientElicitation.accept({ choice: "__proto__" }), "Chosen: __proto__"],
            [ClientElicitation.accept(), "Chosen: 2"],
            [ClientElicitation.decline, "The user did not answer \"Which tea?\". Nothing was done"]
          ] as const
        ) {
          const client = yield* kit.connect({ revision, extensions: {} }, [chosen({ ...teas, initial: "2" })]).pipe(
            Effect.provide(ClientElicitation.layer({
              form: ({ requestedSchema }) => {
                expect(requestedSchema.properties["choice"]).toMatchObject({
                  oneOf: [
                    { const: "10", title: "Green: From Uji" },
                    { const: "2", title: "Black" },
                    { const: "__proto__", title: "__proto__" }
                  ],
                  default: "2"
                })
                return Effect.succeed(given)
              }
            }))
          )
          expect(text(yield* client.callTool("tea"))).toBe(expected)
        }
      }))

    it.effect(`${revision} · fails without pages and forms, and does nothing`, () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const client = yield* kit.connect({ revision, extensions: {} }, [deployed({}, seen), chosen()])
        const result = yield* client.callTool("deploy", { version: "1.2" })
        expect([result.isError, text(result)]).toEqual([
          true,
          "The user cannot be asked \"Deploy 1.2?\": the client shows neither pages nor forms. Nothing was done"
        ])
        expect(text(yield* client.callTool("tea"))).toMatch(/^The user cannot be asked "Which tea\?"/)
        expect(seen).toEqual([])
      }))

    it.effect(`${revision} · takes one of the options only, and the question stays open`, () =>
      Effect.gen(function*() {
        const client = yield* kit.connect({ revision }, [chosen()])
        const { question } = yield* ask(client, "tea")
        expect(question.options.map(({ value }: kit.Json) => value)).toEqual(["10", "2", "__proto__"])
        const wrong = yield* answer(client, question, "3")
        expect([wrong.isError, text(wrong)]).toEqual([true, "\"3\" is not one of the options"])
        expect(text(yield* answer(client, question, "10"))).toBe("Chosen: 10")
      }))
  })
}

describe("a question", () => {
  it.effect("is closed after its timeout", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect({}, [deployed({ timeout: "1 minute", limits: { maxOpenPerClient: 1 } })])
      const { question } = yield* ask(client, "deploy", { version: "1" })
      yield* TestClock.adjust("59 seconds")
      expect(text(yield* client.callTool("deploy", { version: "2" }))).toContain("maxOpenPerClient (1)")
      yield* TestClock.adjust("1 second")
      expect(text(yield* answer(client, question, true))).toContain("no longer open")
      expect((yield* ask(client, "deploy", { version: "3" })).question.title).toBe("Deploy 3?")
    }))

  it.effect("is closed with its session, and its place is free", () =>
    Effect.gen(function*() {
      const server = yield* kit.serve(deployed({ limits: { maxOpen: 1 } }))
      const connect = Client.make(InMemoryTransport.transport(server.serve), {
        extensions: AppHost.extensions,
        revisions: ["2025-11-25"]
      })
      const scope = yield* Scope.make()
      const first = yield* Scope.provide(connect, scope)
      const { question } = yield* ask(first, "deploy", { version: "1" })
      const second = yield* connect
      expect(text(yield* second.callTool("deploy", { version: "2" }))).toContain("maxOpen (1)")
      yield* Scope.close(scope, Exit.void)
      yield* Effect.yieldNow
      expect((yield* ask(second, "deploy", { version: "2" })).question.title).toBe("Deploy 2?")
      expect(text(yield* answer(second, question, true))).toContain("no longer open")
    }))

  it.effect("of one address does not take the places of others, however many sessions it has", () =>
    Effect.gen(function*() {
      const server = yield* kit.serve(deployed({ limits: { maxOpen: 3, maxOpenPerClient: 2 } }))
      const refused: Array<string> = []
      for (let host = 0; host < 50; host++) {
        // Each session has another address of one network.
        const client = yield* kit.connectFrom(server, `2001:db8:1:2::${host.toString(16)}`)
        const result = yield* client.callTool("deploy", { version: "1" })
        if (result.isError === true) refused.push(text(result))
      }
      expect(refused).toHaveLength(48)
      expect(new Set(refused)).toEqual(
        new Set(["Too many questions wait for an answer: maxOpenPerClient (2). Let the user answer them first"])
      )
      const other = yield* kit.connectFrom(server, "2001:db8:1:3::1")
      expect((yield* ask(other, "deploy", { version: "2" })).question.title).toBe("Deploy 2?")
    }))

  it.effect("of clients that no transport tells apart counts for maxOpen alone", () =>
    Effect.gen(function*() {
      const open = yield* openQuestions.make<number>({ limits: { maxOpen: 3, maxOpenPerClient: 1 } })
      const add = (value: number, origin?: Origin) =>
        Effect.provideService(open.add(value), McpRequest, { params: {}, caller: {}, origin } as never)
      yield* add(1, {})
      yield* add(2)
      yield* add(3, { address: "192.0.2.1" })
      expect((yield* Effect.flip(add(4, { address: "192.0.2.1" }))).message).toContain("maxOpenPerClient (1)")
      expect((yield* Effect.flip(add(4))).message).toContain("maxOpen (3)")
    }))

  it.effect("of one caller does not take the places of others", () =>
    Effect.gen(function*() {
      const server = yield* kit.serve(deployed({ limits: { maxOpenPerClient: 2 } }))
      const connect = Client.make(InMemoryTransport.transport(server.serve), { extensions: AppHost.extensions })
      const [greedy, other] = [yield* connect, yield* connect]
      for (const version of ["1", "2"]) yield* ask(greedy, "deploy", { version })
      const third = yield* greedy.callTool("deploy", { version: "3" })
      expect([third.isError, text(third)]).toEqual([
        true,
        "Too many questions wait for an answer: maxOpenPerClient (2). Let the user answer them first"
      ])
      expect((yield* ask(other, "deploy", { version: "1" })).question.title).toBe("Deploy 1?")
    }))

  it.effect("is bounded in its texts, its arguments and its options", () =>
    Effect.gen(function*() {
      const failure = (all: Parameters<typeof kit.connect>[1], tool: string, args: {} = {}) =>
        Effect.flatMap(kit.connect({}, all), (client) => Effect.map(client.callTool(tool, args), text))
      expect(yield* failure([deployed()], "deploy", { version: "x".repeat(20_000) })).toMatch(
        /has 200\d\d characters, more than 20000$/
      )
      const brief = Approval.layer(deploy(), {
        ask: () => Effect.succeed({ title: "Deploy?" }),
        handle: () => Effect.succeed("")
      })
      expect(yield* failure([brief], "deploy", { version: "x".repeat(65_522) })).toContain("The user sees a page")
      expect(yield* failure([brief], "deploy", { version: "x".repeat(65_523) })).toBe(
        "The arguments have 65537 characters, more than 65536"
      )
      const options = (count: number) => Array.from({ length: count }, (_, at) => ({ value: `${at}` }))
      for (
        const [question, problem] of [
          [{ title: " ", options: options(2) }, "The question \" \" has no title"],
          [{ title: "A?", options: options(1) }, "The question \"A?\" has 1 options, and needs two or more"],
          [{ title: "A?", options: options(21) }, "The question \"A?\" has 21 options, more than 20"],
          [
            { title: "A?", options: [{ value: "a" }, { value: "a" }] },
            "The question \"A?\" has two options with the same value"
          ],
          [
            { title: "A?", options: [{ value: "a" }, { value: "" }] },
            "The question \"A?\" has an option with an empty value"
          ],
          [
            { title: "A?", options: options(2), initial: "x" },
            "The question \"A?\" has the initial value \"x\", which is not an option"
          ]
        ] as const
      ) {
        expect(yield* failure([chosen(question)], "tea")).toBe(problem)
      }
      expect(yield* failure([chosen({ title: "A?", options: options(20) })], "tea")).toContain("A?")
    }))

  it.effect("is one of several apps with the same page, which contains none of its texts", () =>
    Effect.gen(function*() {
      const evil = "</script><img src=x onerror=alert(1)>"
      const other = Approval.layer(Approval.make("other"), {
        ask: () => Effect.succeed({ title: evil, details: evil, approve: evil }),
        handle: () => Effect.fail({ message: "It broke" })
      })
      const client = yield* kit.connect({}, [deployed(), other])
      const { question, result } = yield* ask(client, "other")
      // As it is for the page, which sets it as text, and quoted for the model.
      expect([question.title, question.details, question.approve]).toEqual([evil, evil, evil])
      expect(text(result)).toContain(JSON.stringify(evil))
      const pages = yield* client.listResources()
      expect(pages.map(({ uri }) => uri)).toEqual(["ui://skein/approval"])
      const [page] = (yield* client.readResource("ui://skein/approval")).contents as ReadonlyArray<kit.Json>
      expect(page.text).not.toContain("onerror")
      const failed = yield* answer(client, question, true)
      expect([failed.isError, text(failed)]).toEqual([true, "It broke"])
    }))

  it.effect("belongs to the principal that was asked", () =>
    Effect.gen(function*() {
      const server = yield* kit.serve(deployed())
      const as = (id: string) =>
        Client.make(
          InMemoryTransport.transport(server.serve, { principal: { id } }),
          { extensions: AppHost.extensions }
        )
      const [ada, eve] = [yield* as("ada"), yield* as("eve")]
      const { question } = yield* ask(ada, "deploy", { version: "1" })
      expect(text(yield* answer(eve, question, true))).toContain("no longer open")
      expect(text(yield* answer(ada, question, true))).toBe("1 is deployed")
    }))

  it.live("is asked and handled by async functions", () =>
    Effect.gen(function*() {
      const server = new AsyncServer({ name: "shop", version: "1.0.0" }).use(
        Approval.async(deploy(), {
          ask: async ({ version }) => ({ title: `Deploy ${version}?` }),
          handle: async ({ approved, input }) => `${input.version} ${approved}`
        }),
        Choice.async(Choice.make("tea"), { ask: () => teas, handle: ({ chosen }) => chosen })
      )
      const client = yield* Client.make(server.transport(), { extensions: AppHost.extensions })
      const { question } = yield* ask(client, "deploy", { version: "1" })
      expect(text(yield* answer(client, question, true))).toBe("1 true")
      const tea = yield* ask(client, "tea")
      expect(text(yield* answer(client, tea.question, "10"))).toBe("10")
    }))
})
