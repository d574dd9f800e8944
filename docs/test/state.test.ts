/** The programs of `state.md`. */
import { describe, expect, it, vi } from "@effect/vitest"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Client from "@skein/client/Client"
import type { Principal } from "@skein/runtime/Connection"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { shared, stored, TeaShop } from "../programs/carts.ts"
import * as Kettle from "../programs/kettle.ts"

/** Connects clients to a server in memory. */
const connecting = <E>(server: Layer.Layer<McpServer.McpServer, E>) =>
  Effect.map(
    Effect.orDie(Layer.build(server)),
    (context) => (revision: "2025-11-25" | "2026-07-28", principal?: Principal) => {
      const { serve } = Context.get(context, McpServer.McpServer)
      return Effect.orDie(Client.make(InMemoryTransport.transport(serve, { principal }), { revisions: [revision] }))
    }
  )

const textOf = ({ content }: { readonly content: ReadonlyArray<object> }): string =>
  content.map((block) => "text" in block ? block.text : "").join("")

const ada = { id: "ada" }

const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "carts-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

describe("programs/carts.ts", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · keeps a cart for each user, and counts visits of a session or a user`, () =>
      Effect.gen(function*() {
        const connect = yield* connecting(TeaShop)
        const client = yield* connect(revision, ada)
        expect((yield* client.callTool("order", { tea: "sencha", cups: 2 })).structuredContent).toEqual({ items: 1 })
        const second = yield* connect(revision, ada)
        expect((yield* second.callTool("order", { tea: "oolong", cups: 1 })).structuredContent).toEqual({ items: 2 })
        expect(textOf(yield* (yield* connect(revision, { id: "bob" })).callTool("checkout"))).toMatch(/^0 items/)
        expect(textOf(yield* client.callTool("checkout"))).toBe("2 items are on their way")
        expect(textOf(yield* client.callTool("checkout"))).toBe("0 items are on their way")
        expect(textOf(yield* client.callTool("greet"))).toBe("Welcome")
        expect(textOf(yield* client.callTool("greet"))).toBe("Welcome back, for the 2. time")
        expect(textOf(yield* second.callTool("greet"))).toBe(
          revision === "2025-11-25" ? "Welcome" : "Welcome back, for the 3. time"
        )
        const anonymous = yield* connect(revision)
        expect(yield* anonymous.callTool("checkout")).toMatchObject({
          isError: true,
          content: [{ text: "The state cart belongs to a user, and the caller is anonymous" }]
        })
      }))
  }

  it.effect("has notes and a kettle for each session, until it ends", () =>
    Effect.gen(function*() {
      const connect = yield* connecting(TeaShop)
      const folder = yield* temporary
      yield* Effect.acquireRelease(
        Effect.sync(() => vi.stubEnv("TMPDIR", folder)),
        () => Effect.sync(() => vi.unstubAllEnvs())
      )
      const held = () => [readdirSync(folder).length, Kettle.pluggedIn]
      yield* Effect.scoped(Effect.gen(function*() {
        const client = yield* connect("2025-11-25")
        expect(textOf(yield* client.callTool("note", { text: "more sencha" }))).toBe("1 notes")
        expect(textOf(yield* client.callTool("boil"))).toBe("Kettle 1 boils")
        expect(textOf(yield* client.callTool("boil"))).toBe("Kettle 1 boils")
        expect(held()).toEqual([1, 1])
      }))
      // The session ends when the server has seen that the client disconnected.
      yield* Effect.promise(() => vi.waitFor(() => expect(held()).toEqual([0, 0]), 60_000))
    }))

  it.effect("shares the carts of a database between two servers", () =>
    Effect.gen(function*() {
      const folder = yield* temporary
      for (const items of [1, 2]) {
        const connect = yield* connecting(Layer.fresh(shared(join(folder, "shop.db"))))
        const client = yield* connect("2026-07-28", ada)
        const result = yield* client.callTool("order", { tea: "sencha", cups: 2 })
        expect(result.structuredContent).toEqual({ items })
      }
    }))

  it.effect("finds the carts in the files of a folder when the server starts again", () =>
    Effect.gen(function*() {
      const folder = yield* temporary
      const server = stored(folder).pipe(Layer.provide([NodeFileSystem.layer, NodePath.layer]))
      for (const items of [1, 2]) {
        yield* Effect.scoped(Effect.gen(function*() {
          const connect = yield* connecting(Layer.fresh(server))
          const client = yield* connect("2026-07-28", ada)
          const result = yield* client.callTool("order", { tea: "sencha", cups: 2 })
          expect(result.structuredContent).toEqual({ items })
        }))
      }
      expect(readdirSync(folder)).toEqual([expect.stringMatching(/^tea-shop-[\da-f]{64}$/)])
    }))
})
