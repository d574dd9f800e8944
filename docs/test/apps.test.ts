/**
 * Runs `programs/apps.ts`, `programs/appsPage.ts` and `programs/appsHost.ts` together, without a browser, and the ready apps
 * of `programs/appsReady.ts` and the pages of `programs/appsUi.ts`.
 */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { Find, html, Shop } from "../programs/apps.ts"
import { start } from "../programs/appsPage.ts"
import { connect, open, SandboxServer, show } from "../programs/appsHost.ts"
import { Server, server } from "../programs/appsReady.ts"
import * as ui from "../programs/appsUi.ts"
import * as McpServer from "@skein/server/McpServer"
import * as Client from "@skein/client/Client"
import * as kit from "./kit.ts"
import { blocksOf } from "./blocks.ts"

/** The globals of a page in a frame, whose parent is the session. */
const inFrame = (receive: (message: unknown) => void) => {
  const listeners = new Set<(event: object) => void>()
  const parent = { postMessage: (message: unknown) => queueMicrotask(() => receive(structuredClone(message))) }
  const element = () => ({
    style: { setProperty: () => {}, removeProperty: () => {} },
    dataset: {},
    getBoundingClientRect: () => ({ width: 300, height: 200 })
  })
  Object.assign(globalThis, {
    parent,
    innerWidth: 300,
    document: { documentElement: element(), head: element(), createElement: element },
    addEventListener: (_: string, listener: (event: object) => void) => listeners.add(listener),
    removeEventListener: (_: string, listener: (event: object) => void) => listeners.delete(listener),
    requestAnimationFrame: (run: () => void) => setTimeout(run, 0),
    ResizeObserver: class {
      observe = () => {}
      disconnect = () => {}
    }
  })
  return (message: unknown) =>
    queueMicrotask(() => {
      for (const listener of listeners) listener({ data: structuredClone(message), origin: "null", source: parent })
    })
}

it.live("the page draws the result, calls the tool that only it has, and shows the refusal of the user", () =>
  Effect.gen(function*() {
    const { client, forModel, tools } = yield* connect(yield* kit.inMemory(Shop))
    expect(tools.map(({ name }) => name)).toEqual(["sales", "add_sale"])
    expect(forModel.map(({ name }) => name)).toEqual(["sales"])
    const asked: Array<string> = []
    const confirms = (question: string) => Effect.sync(() => asked.push(question) === 1)
    const session = yield* open(client, forModel[0]!, { confirms })
    expect(session.html).toBe(html)
    expect(session.prefersBorder).toBe(true)
    yield* session.attach(inFrame(session.receive))
    const drawn: Array<ReadonlyArray<number>> = []
    const said: Array<string> = []
    const add = yield* Effect.promise(() => start((months) => drawn.push(months), (text) => said.push(text)))
    const { content } = yield* session.call({ year: 2026 })
    expect(content).toEqual([{ type: "text", text: "106 pots of tea in 2026" }])
    yield* Effect.promise(() => add(7))
    expect(drawn).toEqual([[42, 38, 26], [42, 38, 26, 7]])
    yield* Effect.promise(() => add(8))
    expect(said).toEqual(["The call of \"add_sale\" was not approved"])
    expect(asked[0]).toBe("May the page call add_sale with {\"year\":2026,\"amount\":7}?")
    // Without a document, a frame cannot be shown: the sandbox does not answer.
    const setAttribute = () => {}
    Object.assign(globalThis, { location: { origin: "https://sandbox.example.net" } })
    const failed = yield* Effect.flip(Effect.scoped(
      show({ style: { height: "" }, setAttribute, contentWindow: null }, session, { year: 2026 })
    ))
    expect(failed.message).toContain("must have another origin than the host")
  }))

it.live("a client without the extension gets the text, and the tool as the guide shows it with the extension", () =>
  Effect.gen(function*() {
    const Map = McpServer.layer({ name: "map", version: "1.0.0" }, Find)
    const plain = yield* Client.make(yield* kit.inMemory(Map))
    expect((yield* plain.callTool("find", { place: "The shop" })).content).toEqual([
      { type: "text", text: "The shop is at 51.5 N, 0.1 W, 200 m from the station." }
    ])
    const { client } = yield* connect(yield* kit.inMemory(Map))
    expect((yield* client.callTool("find", { place: "The shop" })).content).toEqual([
      { type: "text", text: "The shop is shown on a map." }
    ])
    const missing = yield* Effect.flip(client.readResource("ui://shop/map"))
    expect(missing.message).toContain("The page \"map.html\" cannot be read")
    const shown = blocksOf("apps.md").filter(({ info }) => info === "json").map(({ text }) => JSON.parse(text))
    const shop = yield* connect(yield* kit.inMemory(Shop))
    const { _meta, name } = shop.tools[0]!
    expect(shown[0]).toEqual({ name, _meta })
  }))

it.live("the ready apps ask on their pages, and handle the answers", () =>
  Effect.gen(function*() {
    for (const transport of [yield* kit.inMemory(Server), server.transport()]) {
      const { client, forModel } = yield* connect(transport)
      const deploy = yield* client.callTool("deploy", { version: "1.2" })
      const { token } = deploy._meta!["io.github.skein-mcp/question"] as { readonly token: string }
      const done = yield* client.callTool("deploy_answer", { token, answer: true })
      expect(done.content).toEqual([{ type: "text", text: "1.2 is deployed" }])
      if (forModel.length === 1) continue
      expect(forModel.map(({ name }) => name)).toEqual(["deploy", "choose_seat", "book_table", "upload_invoices"])
      const seat = yield* client.callTool("choose_seat", { train: "IC7" })
      const question = seat._meta!["io.github.skein-mcp/question"] as { readonly token: string }
      const booked = yield* client.callTool("choose_seat_answer", { token: question.token, answer: "IC7-1A" })
      expect(booked.content).toEqual([{ type: "text", text: "The seat IC7-1A is booked" }])
      const form = yield* client.callTool("book_table", { day: "Monday" })
      const fields = form._meta!["io.github.skein-mcp/question"] as { readonly token: string }
      const values = { people: 2, email: "ada@example.com", where: "in" }
      const sent = yield* client.callTool("book_table_answer", { token: fields.token, answer: values })
      expect(sent.content).toEqual([{ type: "text", text: "A table for 2 on Monday is booked" }])
      const asked = yield* client.callTool("upload_invoices")
      const files = asked._meta!["io.github.skein-mcp/question"] as { readonly token: string }
      const steps = [
        { step: "begin", files: [{ name: "a.pdf", type: "application/pdf", size: 3 }] },
        { step: "part", file: 0, at: 0, data: "YWJj" },
        { step: "end" }
      ]
      const answers = yield* Effect.forEach(steps, (answer) =>
        client.callTool("upload_invoices_files", { token: files.token, answer }))
      expect(answers.at(-1)!.content).toEqual([{ type: "text", text: "Stored as a.pdf#3" }])
    }
  }))

it.live("the pages of components are drawn from results, and buttons call their tools", () =>
  Effect.gen(function*() {
    const key = "io.github.skein-mcp/ui"
    const { client, forModel } = yield* connect(yield* kit.inMemory(ui.Server))
    expect(forModel.map(({ name }) => name)).toEqual(["teas", "show_page"])
    const shown = yield* client.callTool("teas", { contains: "e" })
    const tree = JSON.stringify(shown._meta?.[key])
    for (const part of ["Sencha", "Darjeeling", "\"tool\":\"teas\"", "\"tool\":\"order\""]) expect(tree).toContain(part)
    const ordered = yield* client.callTool("order", { tea: "Earl Grey", pots: 2 })
    expect(ordered.content).toEqual([{ type: "text", text: "The user has ordered 2 pots of Earl Grey" }])
    expect(JSON.stringify(ordered._meta?.[key])).toContain("[\"Earl Grey\",1]")
    const refused = yield* client.callTool("order", { tea: "Darjeeling", pots: 1 })
    expect([refused.isError, refused._meta?.[key]]).toEqual([true, undefined])
    const button = { type: "button", label: "Green teas", tool: "teas", arguments: { contains: "Sencha" } }
    const generated = yield* client.callTool("show_page", { tree: button })
    expect(generated._meta?.[key]).toEqual(button)
    const other = yield* connect(ui.server.transport())
    expect((yield* other.client.callTool("teas")).content).toEqual([{ type: "text", text: "Teas with \"\"" }])
  }))

it.live("the sandbox proxy answers with the policy", () =>
  Effect.gen(function*() {
    yield* Effect.addFinalizer(() => Effect.sync(() => SandboxServer.close()))
    SandboxServer.listen(0, "127.0.0.1")
    yield* Effect.promise(() => once(SandboxServer, "listening"))
    const { port } = SandboxServer.address() as AddressInfo
    const answer = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/`))
    expect(answer.headers.get("content-security-policy")).toContain("frame-ancestors https://chat.example.com")
  }))
