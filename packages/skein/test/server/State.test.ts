/** States, values of sessions, and the services of whole servers, in the package `skein`. */
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  AsyncServer,
  customState,
  development,
  eventBus,
  eventStore,
  memoryState,
  perSession,
  requestState,
  Sampling,
  type ServerChange,
  type Service,
  sqliteState,
  state,
  StateError,
  type StateKey
} from "skein"
import { z } from "zod"
import { callText, withClient, withTransport } from "./kit.ts"

const cart = state("cart", { schema: z.array(z.string()), initial: [] })

const shop = (...services: ReadonlyArray<Service>) =>
  new AsyncServer({ name: "shop", version: "1.0.0" })
    .use(...services)
    .tool("add", { input: z.object({ item: z.string() }) }, async ({ item }, context) => {
      const items = await context.state(cart).update((items) => [...items, item])
      expectTypeOf(items).toEqualTypeOf<Array<string>>()
      return items
    })
    .tool("take", {}, (_, context) => context.state(cart).modify(([first = "nothing", ...rest]) => [first, rest]))
    .tool("show", {}, (_, context) => context.state(cart).get())

const asAda = <A>(server: AsyncServer, run: Parameters<typeof withTransport<A>>[1]) =>
  withTransport(server.transport({ principal: { id: "ada" } }), run)

describe("state", () => {
  it("belongs to the user, and rejects with StateError for an anonymous caller", async () => {
    await asAda(shop(), async (client) => {
      await client.callTool("add", { item: "milk" })
      await client.callTool("add", { item: "tea" })
      expect(await callText(client, "take")).toBe("milk")
      expect(await callText(client, "show")).toBe("[\"tea\"]")
    })
    let error: unknown
    const server = shop().tool("reason", {}, async (_, context) => {
      await context.state(cart).get().catch((caught: unknown) => error = caught)
    })
    await withClient(server, (client) => client.callTool("reason"))
    expect(error).toBeInstanceOf(StateError)
    expect((error as StateError).reason._tag).toBe("Anonymous")
  })

  it("stays in a SQLite file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "skein-state-"))
    try {
      const stored = () => sqliteState({ filename: join(folder, "shop.db"), namespace: "shop" })
      await asAda(shop(stored()), (client) => client.callTool("add", { item: "tea" }))
      await asAda(shop(stored()), async (client) => expect(await callText(client, "show")).toBe("[\"tea\"]"))
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("is bounded by the store in memory", () =>
    asAda(shop(memoryState({ maxBytesPerClient: 10 })), async (client) => {
      expect(await callText(client, "add", { item: "x".repeat(20) })).toContain("maxBytesPerClient (10 bytes)")
    }))

  it("stays in a store of the application, whose errors are not seen", async () => {
    const table = new Map<string, { readonly json: string; readonly version: string }>()
    let isBroken = false
    const keyOf = ({ name, owner, scope }: StateKey) => `${owner} ${scope} ${name}`
    const stored = customState({
      get: async (key) => {
        if (isBroken) throw new Error("password")
        return table.get(keyOf(key))
      },
      set: (key, { expected, json }) => {
        if (table.get(keyOf(key))?.version !== expected) return false
        table.set(keyOf(key), { json, version: `${table.size}${json.length}` })
        return true
      },
      remove: (key) => void table.delete(keyOf(key))
    })
    await asAda(shop(stored), async (client) => {
      await client.callTool("add", { item: "tea" })
      expect([...table.keys()]).toEqual(["principal ada user cart"])
      isBroken = true
      expect(await callText(client, "show")).toBe("The state is not available: its store failed")
    })
  })
})

describe("perSession", () => {
  it("acquires a value once for a session, and releases it", async () => {
    const events: Array<string> = []
    const browser = perSession("browser", {
      acquire: async () => {
        events.push("acquire")
        return { title: "page" }
      },
      release: ({ title }) => void events.push(`release ${title}`)
    })
    const server = new AsyncServer({ name: "shop", version: "1.0.0" }).tool("open", {}, async (_, { use }) => {
      const value = await use(browser)
      expectTypeOf(value).toEqualTypeOf<{ title: string }>()
      return value.title
    })
    await withClient(server, async (client) => {
      expect([await callText(client, "open"), await callText(client, "open")]).toEqual(["page", "page"])
      expect(events).toEqual(["acquire"])
    })
    await expect.poll(() => events).toEqual(["acquire", "release page"])
  })
})

describe("services", () => {
  it("fails the start for a key of request states that is too short", () =>
    expect(withClient(shop(requestState({ keys: ["short"] })), async () => {})).rejects.toThrow("32 bytes"))

  it("shows unexpected errors in a development only", async () => {
    const failing = (isDevelopment: boolean) =>
      withClient(
        shop(development(isDevelopment)).tool("fail", {}, () => {
          throw new TypeError("reads undefined")
        }),
        (client) => callText(client, "fail")
      )
    expect(await failing(true)).toContain("reads undefined")
    expect(await failing(false)).not.toContain("reads undefined")
  })

  it("publishes changes on a bus, and notifies clients of those that it receives", async () => {
    const listeners = new Set<(change: ServerChange) => void>()
    const bus = () =>
      eventBus({
        publish: async (change) => listeners.forEach((listener) => listener(change)),
        subscribe: async (onChange) => {
          listeners.add(onChange)
          return () => void listeners.delete(onChange)
        }
      })
    const [first, second] = [shop(bus()), shop(bus())].map((server) => server.resource("shop://menu", {}, () => "x"))
    await withClient(first!, (client) =>
      withClient(second!, async () => {
        for await (const change of client.changes({ uris: ["shop://menu"] })) {
          if (change._tag === "Subscribed") await second!.updated("shop://menu")
          if (change._tag === "ResourceUpdated") return expect(change.uri).toBe("shop://menu")
        }
      }))
    await expect.poll(() => listeners.size).toBe(0)
  })

  it("logs a change that the bus does not publish", async () => {
    const logged: Array<string> = []
    const log = (...given: ReadonlyArray<unknown>) => void logged.push(given.map(String).join(" "))
    const logger = { debug: log, info: log, warn: log, error: log }
    const bus = eventBus({ publish: () => Promise.reject(new Error("no connection")), subscribe: () => () => {} })
    const server = new AsyncServer({ name: "shop", version: "1.0.0", logger }).use(bus)
    await withClient(server, () => server.updated("shop://menu"))
    await expect.poll(() => logged.join("\n")).toContain("a change was not published on the event bus")
  })

  it("stores the events of HTTP streams in a store of the application", async () => {
    const events: Array<string> = []
    const store = eventStore({
      append: (_session, _stream, _event, data) => void events.push(data),
      complete: () => {},
      forget: () => {},
      read: async (_session, _stream, after) => events.slice(after)
    })
    const server = new AsyncServer({ name: "shop", version: "1.0.0", revisions: ["2025-11-25"] })
      .use(store)
      .tool("slow", {}, async (_, { disconnect, progress }) => {
        await progress({ progress: 1 })
        await disconnect(1)
        return "done"
      })
    const listening = await server.listen({ port: 0 })
    try {
      await withTransport(listening.url as never, async (client) => {
        const { content } = await client.callTool("slow", {}, { onProgress: () => {} })
        expect(content).toMatchObject([{ text: "done" }])
      })
      expect(events.length).toBeGreaterThan(0)
    } finally {
      await listening.close()
    }
  })
})

describe("Sampling", () => {
  it("makes messages, and reads answers", () => {
    const answer = {
      role: "assistant",
      model: "m",
      content: [{ type: "text", text: "Tea" }, { type: "tool_use", id: "1", name: "brew", input: {} }]
    } as const
    expect(Sampling.text(answer)).toBe("Tea")
    const results = Sampling.toolUses(answer).map((use) => Sampling.toolResult(use, "hot"))
    expect([Sampling.user("Name a tea"), Sampling.toMessage(answer), Sampling.user(results)]).toMatchObject([
      { role: "user", content: { text: "Name a tea" } },
      { role: "assistant", content: [{ text: "Tea" }, { name: "brew" }] },
      { role: "user", content: [{ toolUseId: "1", content: [{ text: "hot" }] }] }
    ])
  })
})
