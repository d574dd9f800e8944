import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import type { Caller } from "@skein/runtime/RequestContext"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Principal from "@skein/server/Principal"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as kit from "./kit.ts"

const owner = (id: string) => ({ principal }: Caller) => principal?.id === id

/** One definition of each kind, named after a principal, which only that principal may see. */
const of = (id: string) =>
  Catalog.visibleTo(
    owner(id),
    Tool.layer(Tool.make(`tool-${id}`, { input: { secret: Schema.Finite } }), () => Effect.succeed(id)),
    Prompt.layer(Prompt.make(`prompt-${id}`, { arguments: { secret: Schema.String } }), () => Effect.succeed(id), {
      complete: { secret: [`${id} knows`] }
    }),
    Resource.layer(Resource.make(`r://${id}`), Effect.succeed(id)),
    ResourceTemplate.layer(ResourceTemplate.make(`${id}://{x}`, { name: id }), () => Effect.succeed(id))
  )

/** Clients of Ann and Bob at one server, where each has definitions of their own. */
const both = (revision: Revision.Revision, options: Partial<McpServer.Options> = {}) =>
  Effect.gen(function*() {
    const context = yield* Layer.build(
      McpServer.layer({ name: "test", version: "1.0.0", ...options }, of("ann"), of("bob"))
    )
    const server = Context.get(context, McpServer.McpServer)
    const enter = (id: string | undefined) =>
      Effect.tap(kit.linkAs(server, id === undefined ? undefined : { id }, revision), (client) =>
        Revision.era(revision) === "stateless"
          ? Effect.void
          : Effect.map(client.result("initialize", kit.hello(revision)), () =>
            client.notify("notifications/initialized")))
    return { context, server, ann: yield* enter("ann"), bob: yield* enter("bob"), nobody: yield* enter(undefined) }
  })

// Values that JavaScript may return instead of a boolean. Types refuse them.
const notBooleans = [async () => true, () => "yes", () => 1, () => ({})] as unknown as ReadonlyArray<() => boolean>

const lists = [
  ["tools/list", "tools", "name", (id: string) => `tool-${id}`],
  ["prompts/list", "prompts", "name", (id: string) => `prompt-${id}`],
  ["resources/list", "resources", "uri", (id: string) => `r://${id}`],
  ["resources/templates/list", "resourceTemplates", "uriTemplate", (id: string) => `${id}://{x}`]
] as const

for (const revision of Revision.all) {
  describe(revision, () => {
    it.effect(`${revision} · the set currently available to the requesting client: two callers receive disjoint lists`, () =>
      Effect.gen(function*() {
        for (const pageSize of [1, 1000]) {
          const { ann, bob, nobody } = yield* both(revision, { pageSize })
          for (const [method, key, name, named] of lists) {
            const seen = (client: kit.Client) =>
              Effect.map(client.all(method, key), ({ entries }) => entries.map((entry) => entry[name]))
            // Twice in turns: a listing that was encoded for one is not sent to the other.
            for (let i = 0; i < 2; i++) {
              expect(yield* seen(ann)).toEqual([named("ann")])
              expect(yield* seen(bob)).toEqual([named("bob")])
              expect(yield* seen(nobody)).toEqual([])
            }
          }
        }
      }))

    it.effect(`${revision} · hides an entry whose predicate returns a promise, or another value that is not true`, () =>
      Effect.gen(function*() {
        const tool = (name: string, visible: () => boolean) =>
          Tool.layer(Tool.make(name, { visible }), () => Effect.succeed("secret"))
        const server = kit.server(
          tool("open", () => true),
          ...notBooleans.flatMap((visible, n) => [
            tool(`own${n}`, visible),
            Catalog.visibleTo(visible, tool(`outer${n}`, () => true))
          ])
        )
        const client = yield* kit.client(server, revision)
        expect((yield* client.result("tools/list")).tools.map(({ name }: kit.Json) => name)).toEqual(["open"])
        for (const name of ["own0", "outer0"]) {
          const unknown = yield* client.error("tools/call", { name: "other" })
          const message = unknown.message.replace("other", name)
          expect(yield* client.error("tools/call", { name })).toEqual({ ...unknown, message })
        }
      }))

    it.effect(`${revision} · answers requests for a hidden entry as for an unknown entry, for all arguments`, () =>
      Effect.gen(function*() {
        const { ann, bob } = yield* both(revision)
        const argument = { name: "secret", value: "" }
        const requests = (id: string): ReadonlyArray<readonly [string, kit.Json]> => [
          ["tools/call", { name: `tool-${id}` }],
          ["tools/call", { name: `tool-${id}`, arguments: { secret: "no number" } }],
          ["tools/call", { name: `tool-${id}`, arguments: { secret: 1 } }],
          ["prompts/get", { name: `prompt-${id}` }],
          ["prompts/get", { name: `prompt-${id}`, arguments: { secret: "s" } }],
          ["resources/read", { uri: `r://${id}` }],
          ["resources/read", { uri: `${id}://1` }],
          ["completion/complete", { ref: { type: "ref/prompt", name: `prompt-${id}` }, argument }],
          ["completion/complete", { ref: { type: "ref/resource", uri: `${id}://{x}` }, argument }],
          ["completion/complete", { ref: { type: "ref/resource", uri: `${id}://1` }, argument }],
          ["resources/subscribe", { uri: `r://${id}` }]
        ]
        const session = Revision.era(revision) === "session"
        const hidden = requests("bob")
        const unknown = requests("xyz")
        for (const [i, [method, params]] of hidden.entries()) {
          if (method === "resources/subscribe" && !session) continue
          const mine = yield* ann.error(method, params)
          const nothing = yield* ann.error(method, unknown[i]![1])
          expect(JSON.stringify(mine).replaceAll("bob", "xyz")).toBe(JSON.stringify(nothing))
          expect(mine.code).toBe(method.startsWith("resources") && session ? -32002 : -32602)
        }
        // Bob receives his own suggestions.
        const completed = yield* bob.result("completion/complete", {
          ref: { type: "ref/prompt", name: "prompt-bob" },
          argument
        })
        expect(completed.completion.values).toEqual(["bob knows"])
        expect((yield* bob.call("tool-bob", { secret: 1 })).content[0].text).toBe("bob")
        expect((yield* bob.result("resources/read", { uri: "bob://1" })).contents[0].text).toBe("bob")
      }))

    it.effect(`${revision} · refuses to subscribe to a hidden resource, and sends no notification once it is hidden`, () =>
      Effect.gen(function*() {
        let open = true
        const uri = "r://shared"
        const shared = Resource.layer(
          Resource.make(uri, { visible: (caller) => open || owner("bob")(caller) }),
          Effect.succeed("")
        )
        const context = yield* Layer.build(kit.server(shared))
        const server = Context.get(context, McpServer.McpServer)
        const clients: Array<kit.Client> = []
        for (const id of ["ann", "bob"]) {
          const client = yield* kit.linkAs(server, { id }, revision)
          clients.push(client)
          if (Revision.era(revision) === "stateless") {
            client.send("subscriptions/listen", { notifications: { resourceSubscriptions: [uri] } })
            continue
          }
          yield* client.result("initialize", kit.hello(revision))
          client.notify("notifications/initialized")
          yield* client.result("resources/subscribe", { uri })
        }
        yield* kit.settle
        const noticeCounts = Effect.andThen(
          Effect.andThen(Effect.provide(Catalog.updated(uri), context), kit.settle),
          Effect.sync(() => clients.map((client) => client.notices("notifications/resources/updated").length))
        )
        expect(yield* noticeCounts).toEqual([1, 1])
        open = false
        expect(yield* noticeCounts).toEqual([1, 2])
        open = true
        expect(yield* noticeCounts).toEqual([2, 3])
      }))
  })
}

describe("predicates", () => {
  it.effect("an entry may be visible to one client, or in one revision", () =>
    Effect.gen(function*() {
      const server = kit.server(
        Tool.layer(Tool.make("kit", { visible: ({ info }) => info?.["name"] === "kit" }), () => Effect.succeed("")),
        Tool.layer(Tool.make("other", { visible: ({ info }) => info?.["name"] !== "kit" }), () => Effect.succeed("")),
        ...Revision.all.map((only) =>
          Tool.layer(Tool.make(only, { visible: ({ revision }) => revision === only }), () => Effect.succeed(""))
        )
      ) as kit.Server
      for (const revision of Revision.all) {
        const client = yield* kit.client(server, revision)
        const { tools } = yield* client.result("tools/list")
        expect(tools.map(({ name }: kit.Json) => name)).toEqual(["kit", revision])
      }
    }))

  it.effect("combines the predicates around definitions with the predicate of the entry", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const says = (name: string, answer: boolean) => () => {
        asked.push(name)
        return answer
      }
      const tool = (name: string, visible: boolean) =>
        Tool.layer(Tool.make(name, { visible: says(name, visible) }), () => Effect.succeed(""))
      const client = yield* kit.client(kit.server(
        Catalog.visibleTo(says("out", true), Catalog.visibleTo(says("in", true), tool("a", true), tool("b", false))),
        Catalog.visibleTo(says("no", false), tool("c", true))
      ))
      const { tools } = yield* client.result("tools/list")
      expect(tools.map(({ name }: kit.Json) => name)).toEqual(["a"])
      expect(new Set(asked)).toEqual(new Set(["a", "b", "c", "in", "out", "no"].filter((name) => asked.includes(name))))
      expect(asked).toContain("in")
      expect(asked).toContain("no")
    }))

  it.effect("a predicate that throws is a defect of the request, and hides the entry from notifications", () =>
    Effect.gen(function*() {
      let broken = false
      const visible = () => {
        if (broken) throw new Error("broken")
        return true
      }
      yield* kit.logged((lines) =>
        Effect.gen(function*() {
          const context = yield* Layer.build(kit.server(
            Resource.layer(Resource.make("r://a", { visible }), Effect.succeed("a")),
            Resource.layer(Resource.make("r://b"), Effect.succeed("b"))
          ))
          const client = yield* Effect.provide(kit.connect("2025-11-25"), context)
          for (const uri of ["r://a", "r://b"]) yield* client.result("resources/subscribe", { uri })
          broken = true
          expect((yield* client.error("resources/read", { uri: "r://a" })).code).toBe(-32603)
          expect((yield* client.error("resources/subscribe", { uri: "r://a" })).code).toBe(-32002)
          for (const uri of ["r://a", "r://b"]) yield* Effect.provide(Catalog.updated(uri), context)
          yield* kit.settle
          expect(client.notices("notifications/resources/updated").map(({ params }) => params.uri)).toEqual(["r://b"])
          expect((yield* client.result("resources/read", { uri: "r://b" })).contents[0].text).toBe("b")
          expect(lines.some((line) => line.includes("broken"))).toBe(true)
        })
      )
    }))

  it.effect("lists a tool to each caller as its definition says, without caching one form for all", () =>
    Effect.gen(function*() {
      const one = Tool.make("one", {
        _meta: { "com.example/plain": true },
        listedAs: ({ _meta, ...plain }, { capabilities }) =>
          capabilities["roots"] === undefined || _meta === undefined ? plain : { ...plain, _meta }
      })
      const server = Context.get(
        yield* Layer.build(kit.server(Tool.layer(one, () => Effect.succeed("1")))),
        McpServer.McpServer
      )
      const client = yield* kit.linkAs(server, undefined, "2026-07-28")
      const list = (capabilities: object) =>
        client.result("tools/list", {
          _meta: { ...kit.meta(), "io.modelcontextprotocol/clientCapabilities": capabilities }
        })
      for (let i = 0; i < 2; i++) {
        const changed = yield* list({ roots: {} })
        expect(changed.tools).toEqual([{
          name: "one",
          inputSchema: expect.anything(),
          _meta: { "com.example/plain": true }
        }])
        expect(changed.cacheScope).toBe("private")
        expect((yield* list({})).tools).toEqual([{ name: "one", inputSchema: expect.anything() }])
      }
      expect((yield* client.call("one", {})).content[0].text).toBe("1")
    }))

  it.effect("notifies callers of a changed list even if they cannot see the changed entry", () =>
    Effect.gen(function*() {
      const { ann, context } = yield* both("2025-11-25")
      yield* kit.settle
      yield* Effect.provide(Effect.scoped(Catalog.disable("tool", "tool-bob")), context)
      yield* Effect.andThen(TestClock.adjust(50), kit.settle)
      expect(ann.notices("notifications/tools/list_changed").length).toBe(1)
      expect((yield* ann.result("tools/list")).tools.map(({ name }: kit.Json) => name)).toEqual(["tool-ann"])
    }))
})

describe("the principal", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · a handler has the principal of the transport, and no claim of the client changes it`, () =>
      Effect.gen(function*() {
        const who = Tool.layer(
          Tool.make("who"),
          () => Effect.map(Principal.current, (principal) => JSON.stringify(Option.getOrNull(principal)))
        )
        const server = Context.get(yield* Layer.build(kit.server(who)), McpServer.McpServer)
        for (const principal of [{ id: "ann", scopes: ["read"] }, undefined]) {
          const client = yield* kit.linkAs(server, principal, revision)
          if (Revision.era(revision) === "session") yield* client.result("initialize", kit.hello(revision))
          const { content } = yield* client.result("tools/call", { name: "who", principal: { id: "root" } })
          expect(JSON.parse(content[0].text)).toEqual(principal ?? null)
        }
      }))
  }
})
