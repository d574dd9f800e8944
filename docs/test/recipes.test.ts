/** The programs of the recipes that no other guide has. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Tenants, transportTo } from "../programs/headers.ts"
import { read } from "./blocks.ts"

describe("programs/headers.ts", () => {
  it.live("reads the headers that the client sends, and sends a parameter as one", () =>
    Effect.gen(function*() {
      const server = yield* Layer.build(Layer.provide(NodeHttp.layer({ port: 0 }), Tenants))
      const { url } = Context.get(server, NodeHttp.Server)
      const client = yield* Client.make(transportTo(url))
      const call = (name: string, args?: Record<string, string>) =>
        Effect.map(client.callTool(name, args), ({ content }) => content[0])
      expect(yield* call("tenant")).toMatchObject({ text: "You are ada" })
      expect(yield* call("locale")).toMatchObject({ text: "de" })
      yield* client.listTools()
      expect(yield* call("report", { region: "north" })).toMatchObject({ text: "All is well in north" })
    }).pipe(Effect.scoped))
})

describe("recipes/docker.md", () => {
  it("shows the Dockerfile of a created project", () => {
    const [, shown] = /^```dockerfile\n([^]*?)^```$/m.exec(read("recipes/docker.md")) ?? []
    expect(shown).toBe(read("../packages/create-skein/templates/http/shared/Dockerfile"))
  })
})

describe("troubleshooting.md", () => {
  it("names messages that the pages of messages list", () => {
    const rows = Array.from(
      read("troubleshooting.md").matchAll(/^### (.+)\n\n<!-- (\S+): (.+) -->$/gm),
      ([, title = "", page = "", message = ""]) => ({ title, page, message })
    )
    expect(rows.length).toBeGreaterThan(15)
    expect(rows.filter(({ message, page }) => !read(`messages/${page}.md`).includes(`| ${message} |`))).toEqual([])
  })
})
