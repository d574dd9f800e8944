import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Catalog from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as kit from "./kit.ts"

const says = (text: string) => () => Effect.succeed(text)
const tool = (name: string, text = name) => Tool.layer(Tool.make(name), says(text))

/** A server, a client, and scopes for changes. */
const set = (
  definitions: ReadonlyArray<McpServer.Definitions>,
  revision: Revision.Revision = Revision.latest
) =>
  Effect.gen(function*() {
    const context = yield* Layer.build(kit.server(...definitions) as kit.Server)
    const client = yield* Effect.provide(kit.connect(revision), context)
    /** Makes a change, and returns the effect that undoes it. */
    const change = <E>(effect: Effect.Effect<void, E, Catalog.Catalog | Scope.Scope>) =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        yield* Effect.provide(Scope.provide(effect, scope), context)
        return Scope.close(scope, Exit.void)
      })
    const names = Effect.map(client.result("tools/list"), ({ tools }) => tools.map(({ name }: kit.Json) => name))
    const call = (name: string) =>
      Effect.map(client.request("tools/call", { name }), ({ error, result }) => error?.code ?? result.content[0].text)
    const refused = <E>(effect: Effect.Effect<void, E, Catalog.Catalog | Scope.Scope>) =>
      Effect.flip(Effect.provide(Effect.scoped(effect), context))
    return { call, change, client, context, names, refused }
  })

describe("changes at run time", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · adds, replaces and removes each kind while the server runs, and undoes each change with its scope`, () =>
      Effect.gen(function*() {
        const { change, client } = yield* set([
          tool("t", "old"),
          Prompt.layer(Prompt.make("p"), says("old")),
          Resource.layer(Resource.make("r://r"), Effect.succeed("old")),
          ResourceTemplate.layer(ResourceTemplate.make("t://{x}", { name: "t" }), says("old"))
        ], revision)
        const read = (uri: string) =>
          Effect.map(client.request("resources/read", { uri }), (m) => m.error?.message ?? m.result.contents[0].text)
        const state = Effect.gen(function*() {
          const prompt = yield* client.request("prompts/get", { name: "p" })
          return [
            yield* Effect.map(
              client.request("tools/call", { name: "t" }),
              (m) => m.error?.message ?? m.result.content[0].text
            ),
            prompt.error?.message ?? prompt.result.messages[0].content.text,
            yield* read("r://r"),
            yield* read("t://1")
          ]
        })
        const sizes = Effect.gen(function*() {
          return [
            (yield* client.result("tools/list")).tools.length,
            (yield* client.result("prompts/list")).prompts.length,
            (yield* client.result("resources/list")).resources.length,
            (yield* client.result("resources/templates/list")).resourceTemplates.length
          ]
        })
        const old = ["old", "old", "old", "old"]
        const gone = ["Unknown tool: t", "Unknown prompt: p", "Resource not found", "Resource not found"]
        expect(yield* state).toEqual(old)
        const unreplace = yield* change(Effect.gen(function*() {
          yield* Tool.replace(Tool.make("t"), says("new"))
          yield* Prompt.replace(Prompt.make("p"), says("new"))
          yield* Resource.replace(Resource.make("r://r"), Effect.succeed("new"))
          yield* ResourceTemplate.replace(ResourceTemplate.make("t://{x}", { name: "t" }), says("new"))
        }))
        expect(yield* state).toEqual(["new", "new", "new", "new"])
        expect(yield* sizes).toEqual([1, 1, 1, 1])
        const unadd = yield* change(Effect.gen(function*() {
          yield* Tool.add(Tool.make("t2"), says("new"))
          yield* Prompt.add(Prompt.make("p2"), says("new"))
          yield* Resource.add(Resource.make("r://r2"), Effect.succeed("new"))
          yield* ResourceTemplate.add(ResourceTemplate.make("t2://{x}", { name: "t" }), says("new"))
        }))
        expect(yield* sizes).toEqual([2, 2, 2, 2])
        yield* unreplace
        expect(yield* state).toEqual(old)
        yield* unadd
        expect(yield* sizes).toEqual([1, 1, 1, 1])
        for (const one of [Catalog.remove, Catalog.disable]) {
          const undo = yield* change(Effect.gen(function*() {
            yield* one("tool", "t")
            yield* one("prompt", "p")
            yield* one("resource", "r://r")
            yield* one("resource template", "t://{x}")
          }))
          expect(yield* state).toEqual(gone)
          expect(yield* sizes).toEqual([0, 0, 0, 0])
          yield* undo
          expect(yield* state).toEqual(old)
        }
        expect(yield* sizes).toEqual([1, 1, 1, 1])
      }))
  }

  it.effect("stacks replacements, and removes them in any order", () =>
    Effect.gen(function*() {
      const { call, change } = yield* set([tool("t", "0")])
      const one = yield* change(Tool.replace(Tool.make("t"), says("1")))
      const two = yield* change(Tool.replace(Tool.make("t"), says("2")))
      const three = yield* change(Tool.replace(Tool.make("t"), says("3")))
      expect(yield* call("t")).toBe("3")
      yield* two
      expect(yield* call("t")).toBe("3")
      yield* three
      expect(yield* call("t")).toBe("1")
      yield* one
      expect(yield* call("t")).toBe("0")
    }))

  it.effect("frees the name of a removed entry, and keeps an entry that was added meanwhile on top", () =>
    Effect.gen(function*() {
      const { call, change } = yield* set([tool("t", "old")])
      const back = yield* change(Catalog.remove("tool", "t"))
      const away = yield* change(Tool.add(Tool.make("t"), says("new")))
      expect(yield* call("t")).toBe("new")
      yield* back
      expect(yield* call("t")).toBe("new")
      yield* away
      expect(yield* call("t")).toBe("old")
    }))

  it.effect("does not restore an entry whose scope closed while it was removed", () =>
    Effect.gen(function*() {
      const { call, change, names } = yield* set([tool("other")])
      const away = yield* change(Tool.add(Tool.make("t"), says("t")))
      const back = yield* change(Catalog.remove("tool", "t"))
      yield* away
      yield* back
      expect(yield* call("t")).toBe(-32602)
      expect(yield* names).toEqual(["other"])
    }))

  it.effect("applies the last call of enable and disable, also to replacements, and keeps the name taken", () =>
    Effect.gen(function*() {
      const { call, change, refused } = yield* set([tool("t", "old")])
      const off = yield* change(Catalog.disable("tool", "t"))
      expect(yield* refused(Tool.add(Tool.make("t"), says("x")))).toMatchObject({ reason: { _tag: "DuplicateName" } })
      const replaced = yield* change(Tool.replace(Tool.make("t"), says("new")))
      expect(yield* call("t")).toBe(-32602)
      const on = yield* change(Catalog.enable("tool", "t"))
      expect(yield* call("t")).toBe("new")
      yield* off
      expect(yield* call("t")).toBe("new")
      yield* on
      yield* replaced
      expect(yield* call("t")).toBe("old")
    }))

  it.effect("lets handlers switch a tool on and off, and restores the previous switch when the last one is undone", () =>
    Effect.gen(function*() {
      const switching = (name: string, on: boolean) =>
        Tool.layer(Tool.make(name), () => Effect.as(Catalog.setEnabled("tool", "t", on), "done"))
      const { call, change, names, refused } = yield* set([
        tool("t"),
        switching("lock", false),
        switching("open", true)
      ])
      for (const name of ["lock", "open", "lock", "lock"]) expect(yield* call(name)).toBe("done")
      expect(yield* names).toEqual(["lock", "open"])
      const undo = yield* change(Catalog.enable("tool", "t"))
      expect(yield* call("t")).toBe("t")
      yield* undo
      expect(yield* call("t")).toBe(-32602)
      expect(yield* call("open")).toBe("done")
      expect(yield* call("t")).toBe("t")
      expect(yield* refused(Catalog.setEnabled("tool", "x", true))).toMatchObject({ reason: { _tag: "NotFound" } })
    }))

  it.effect("declares disabled definitions, lists none of them, and enables them later", () =>
    Effect.gen(function*() {
      const { call, change, client, names } = yield* set([Catalog.disabled(tool("a"), tool("b"))])
      expect((yield* client.result("server/discover")).capabilities.tools).toEqual({ listChanged: true })
      expect(yield* names).toEqual([])
      expect(yield* call("a")).toBe(-32602)
      const off = yield* change(Catalog.enable("tool", "a"))
      expect(yield* names).toEqual(["a"])
      expect(yield* call("a")).toBe("a")
      yield* off
      expect(yield* names).toEqual([])
    }))

  it.effect("fails with a typed error for a name that does not exist or exists already", () =>
    Effect.gen(function*() {
      const { names, refused } = yield* set([tool("t")])
      const unknown = { _tag: "DefinitionError", reason: { _tag: "NotFound" }, kind: "tool", definition: "x" }
      for (const change of [Catalog.remove, Catalog.disable, Catalog.enable]) {
        const error = yield* refused(change("tool", "x"))
        expect(error).toMatchObject({ ...unknown, message: "No tool has the name \"x\"" })
        expect(yield* refused(change("resource template", "x"))).toMatchObject({ kind: "resource template" })
      }
      expect(yield* refused(Tool.replace(Tool.make("x"), says("")))).toMatchObject(unknown)
      expect(yield* refused(Tool.add(Tool.make("t"), says("")))).toMatchObject({
        reason: { _tag: "DuplicateName" },
        definition: "t"
      })
      expect(yield* names).toEqual(["t"])
    }))

  it.effect("completes a call in progress after its tool was removed", () =>
    Effect.gen(function*() {
      const { change, client } = yield* set([tool("other")])
      const away = yield* change(Tool.add(Tool.make("slow"), () => Effect.as(Effect.sleep("1 second"), "done")))
      const id = client.send("tools/call", { name: "slow" })
      yield* kit.settle
      yield* away
      expect((yield* client.error("tools/call", { name: "slow" })).code).toBe(-32602)
      yield* Effect.andThen(Effect.andThen(kit.settle, TestClock.adjust("1 second")), kit.settle)
      expect((yield* client.answer(id)).result.content[0].text).toBe("done")
    }))
})

describe("changes by handlers", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · a tool adds one tool for the life of the server and one for its call`, () =>
      Effect.gen(function*() {
        const grow = Tool.layer(Tool.make("grow"), () =>
          Effect.gen(function*() {
            yield* Catalog.persistent(Tool.add(Tool.make("lasting"), says("I am here")))
            yield* Effect.scoped(Effect.andThen(Tool.add(Tool.make("passing"), says("")), Effect.void))
            return "grown"
          }))
        const { call, client, names } = yield* set([grow], revision)
        expect(yield* call("grow")).toBe("grown")
        expect(yield* names).toEqual(["grow", "lasting"])
        expect(yield* call("lasting")).toBe("I am here")
        // The name is in use the second time, and the tool reports that.
        const again = yield* client.call("grow")
        expect(again).toMatchObject({
          isError: true,
          content: [{ text: "A tool with the name \"lasting\" exists already" }]
        })
      }))
  }

  it.effect("an added definition captures the services of the handler that adds it, and nothing of the handled request", () =>
    Effect.gen(function*() {
      class Database extends Context.Service<Database, string>()("Database") {}
      class User extends Context.Service<User, string>()("User") {}
      // A middleware that reads its user from the request.
      const users = Middleware.layer((next) => (exchange) =>
        Effect.provideService(next(exchange), User, String(exchange.params?.["user"]))
      )
      const who = () =>
        Effect.gen(function*() {
          const { id } = yield* McpRequest
          return `${yield* Database} ${Option.getOrThrow(yield* Effect.serviceOption(User))} ${id}`
        })
      const add = Tool.layer(
        Tool.make("add"),
        () =>
          Effect.as(Catalog.persistent(Tool.add(Tool.make("who"), who)), "added").pipe(Effect.annotateLogs("by", "ann"))
      )
      const { client } = yield* set([users, Layer.provide(add, Layer.succeed(Database, "db"))])
      yield* client.result("tools/call", { name: "add", user: "ann" })
      const text = (user: string) =>
        Effect.map(client.result("tools/call", { name: "who", user }), ({ content }) => content[0].text)
      expect(yield* text("bob")).toMatch(/^db bob \d+$/)
      expect(yield* text("cat")).not.toBe(yield* text("cat"))
    }))

  it.effect("an added definition does not lower the log level of the application's loggers", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
      const noisy = () => Effect.as(Effect.logDebug("debug"), "ok")
      const add = Tool.layer(
        Tool.make("add"),
        () => Effect.as(Catalog.persistent(Tool.add(Tool.make("noisy"), noisy)), "ok")
      )
      const { client } = yield* Effect.provide(set([add]), Logger.layer([logger]))
      const _meta = { "io.modelcontextprotocol/logLevel": "debug" }
      yield* client.result("tools/call", { name: "add", _meta })
      yield* client.call("noisy")
      expect(lines).toEqual([])
      yield* client.result("tools/call", { name: "noisy", _meta })
      expect(lines).toEqual([])
      expect(client.notices("notifications/message").map(({ params }) => params.data)).toEqual(["debug"])
    }))

  it.effect("each server has its own catalog, also for handlers that two servers share", () =>
    Effect.gen(function*() {
      const grow = Tool.layer(Tool.make("grow"), () =>
        Effect.as(Catalog.persistent(Tool.add(Tool.make("more"), says(""))), "grown"))
      const [one, two] = [yield* set([grow]), yield* set([grow])]
      yield* one.call("grow")
      expect(yield* one.names).toEqual(["grow", "more"])
      expect(yield* two.names).toEqual(["grow"])
    }))

  it.effect("persistent changes end with the server", () =>
    Effect.gen(function*() {
      let open = 0
      const held = Effect.acquireRelease(Effect.sync(() => void open++), () => Effect.sync(() => void open--))
      const hold = Tool.layer(Tool.make("hold"), () => Effect.as(Catalog.persistent(held), "held"))
      const scope = yield* Scope.make()
      const { call } = yield* Scope.provide(set([hold]), scope)
      yield* call("hold")
      expect(open).toBe(1)
      yield* Scope.close(scope, Exit.void)
      expect(open).toBe(0)
    }))
})

describe("places", () => {
  it.effect("build definitions while the server runs, in the order of their numbers, where their layer is", () =>
    Effect.gen(function*() {
      let build: Catalog.Places | undefined
      const parts = Layer.effectDiscard(Effect.map(Catalog.places, (places) => void (build = places)))
      const { context, names } = yield* set([tool("z", "first"), parts, tool("a", "last")], "2025-11-25")
      const added = (at: number, ...all: ReadonlyArray<Layer.Layer<never, unknown, Catalog.Catalog>>) =>
        Effect.gen(function*() {
          const scope = yield* Scope.make()
          yield* Effect.provideContext(Scope.provide(build!(at, Layer.mergeAll(Layer.empty, ...all)), scope), context)
          return scope
        })
      const second = yield* added(2, tool("two", "2"))
      yield* added(5, McpServer.mount("five", tool("y", "5"), tool("b", "5")))
      yield* added(1, tool("one", "1"))
      expect(yield* names).toEqual(["z", "one", "two", "five_y", "five_b", "a"])
      yield* Scope.close(second, Exit.void)
      yield* added(2, tool("other", "2"))
      expect(yield* names).toEqual(["z", "one", "other", "five_y", "five_b", "a"])
    }))

  it.effect("run ready of an extension that is added, and end its work before it is removed", () =>
    Effect.gen(function*() {
      const events: Array<string> = []
      const note = (event: string) => Effect.sync(() => void events.push(event))
      let build: Catalog.Places | undefined
      const parts = Layer.effectDiscard(Effect.map(Catalog.places, (places) => void (build = places)))
      const { context } = yield* set([parts], "2025-11-25")
      const extension = Extension.layer({
        name: "late",
        ready: Effect.acquireRelease(
          note("ready"),
          () =>
            note(
              `end ${Extension.list(Context.get(context as Context.Context<Catalog.Catalog>, Catalog.Catalog)).length}`
            )
        )
      })
      const scope = yield* Scope.make()
      yield* Effect.provideContext(Scope.provide(build!(0, McpServer.mount("part", extension)), scope), context)
      expect(events).toEqual(["ready"])
      yield* Scope.close(scope, Exit.void)
      expect(events).toEqual(["ready", "end 1"])
      expect(Extension.list(Context.get(context as Context.Context<Catalog.Catalog>, Catalog.Catalog))).toEqual([])
    }))
})
