/** Child processes behind a proxy of this process: what it passes on, and what happens when they are killed. */
import { describe, expect, it } from "@effect/vitest"
import type * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Elicitation from "@skein/client/Elicitation"
import * as Proxy from "@skein/gateway/Proxy"
import type * as Revision from "@skein/protocol/Revision"
import type { Progress } from "@skein/runtime/RequestContext"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { child, Journal, until } from "./children.ts"
import { answering, build, connect, eras, pairs } from "./kit.ts"

const textOf = ({ content }: { readonly content: ReadonlyArray<unknown> }) =>
  (content[0] as { readonly text: string }).text
const names = (client: Client.Client) =>
  Effect.orDie(Effect.map(client.listTools(), (tools) => tools.map(({ name }) => name)))

/** A server with a proxy of a child. */
const before = (journal: Journal, revision: Revision.Revision, options?: Client.Options) =>
  build(McpServer.layer({ name: "near", version: "1" }, Proxy.layer(child(journal, revision, options))))

/** Collects the changes that a client is notified of. */
const changesOf = (client: Client.Client, filter: Parameters<Client.Client["changes"]>[0]) =>
  Effect.gen(function*() {
    const seen: Array<string> = []
    const changes = Stream.runForEach(client.changes(filter), ({ _tag }) => Effect.sync(() => seen.push(_tag)))
    yield* Effect.forkScoped(changes, { startImmediately: true })
    yield* until(() => seen.includes("Subscribed"))
    return seen
  })

const isLost = (error: ClientError) =>
  expect(error).toMatchObject({
    reason: {
      error: {
        code: -32603,
        message: "The connection to the remote server child was lost before it answered. The request may have run: " +
          "check before you send it again",
        data: { reason: "RemoteUnavailable" }
      }
    }
  })

describe.each(pairs(eras))("%s before a child of %s", (front, behind) => {
  it.live("passes calls, questions, progress and log messages on", () =>
    Effect.gen(function*() {
      const journal = yield* Journal.make
      const near = yield* before(journal, behind)
      const client = yield* connect(near, front, {}, answering)
      expect(textOf(yield* client.callTool("raw", { a: 1 }))).toBe("{\"a\":1}")
      expect(textOf(yield* client.callTool("pid"))).toBe(String(journal.pids("started")[0]))
      const answer = { action: "accept", content: { name: "Ada" } }
      expect(JSON.parse(textOf(yield* client.callTool("ask")))).toEqual([answer, answer])
      expect(journal.count("reserved")).toBe(1)
      expect(textOf(yield* client.callTool("all"))).toBe("accept Tea 1")
      const logs: Array<unknown> = []
      const logging = Stream.runForEach(client.logs, ({ params: { data } }) => Effect.sync(() => logs.push(data)))
      yield* Effect.forkScoped(logging, { startImmediately: true })
      yield* client.setLoggingLevel("info")
      const reports: Array<Progress> = []
      yield* client.callTool("noisy", {}, { onProgress: (progress) => reports.push(progress) })
      expect(reports.map(({ progress }) => progress)).toEqual([1, 2])
      yield* until(() => logs.length > 0)
      expect(logs).toEqual(["hot"])
      expect(journal.pids("started")).toHaveLength(1)
    }))

  it.live("cancels a call at the child", () =>
    Effect.gen(function*() {
      const journal = yield* Journal.make
      const near = yield* before(journal, behind)
      const client = yield* connect(near, front, {}, answering)
      const call = yield* Effect.forkChild(client.callTool("slow"), { startImmediately: true })
      yield* journal.until("slow began")
      yield* Fiber.interrupt(call)
      yield* journal.until("slow interrupted")
      expect(textOf(yield* client.callTool("raw", { a: 1 }))).toBe("{\"a\":1}")
    }))

  it.live("follows the lists and resources of the child", () =>
    Effect.gen(function*() {
      const journal = yield* Journal.make
      const near = yield* before(journal, behind)
      const client = yield* connect(near, front)
      const seen = yield* changesOf(client, { tools: true, uris: ["notes://today"] })
      yield* client.callTool("grow")
      yield* until(() => seen.includes("ToolListChanged"))
      expect(yield* names(client)).toContain("grown")
      expect(textOf(yield* client.callTool("grown"))).toBe("for good")
      yield* client.callTool("touch", { uri: "notes://today" })
      yield* until(() => seen.includes("ResourceUpdated"))
    }))

  // By default the proxy makes another client. With `reconnect` the client starts another child.
  it.live.each([
    ["the proxy", undefined] as const,
    ["the client", true] as const
  ])(
    "fails a call whose child is killed, and %s starts the next one, with its lists and subscriptions",
    ([, reconnect]) =>
      Effect.gen(function*() {
        const journal = yield* Journal.make
        const near = yield* before(journal, behind, { reconnect })
        const client = yield* connect(near, front, {}, answering)
        const seen = yield* changesOf(client, { tools: true, uris: ["notes://today"] })
        expect(yield* names(client)).toContain("start-1")
        const call = yield* Effect.forkChild(Effect.flip(client.callTool("slow")), { startImmediately: true })
        yield* journal.until("slow began")
        const [first] = journal.pids("started")
        process.kill(first!, "SIGKILL")
        isLost(yield* Fiber.join(call))
        // The next call waits for the next child.
        const second = Number(textOf(yield* client.callTool("pid")))
        expect(journal.pids("started")).toEqual([first, second])
        expect(journal.count("slow began")).toBe(1)
        yield* until(() => seen.includes("ToolListChanged") && seen.includes("ResourceUpdated"))
        expect(yield* names(client)).toContain("start-2")
        expect(yield* names(client)).not.toContain("start-1")
        const updates = seen.filter((tag) => tag === "ResourceUpdated").length
        yield* client.callTool("touch", { uri: "notes://today" })
        yield* until(() => seen.filter((tag) => tag === "ResourceUpdated").length > updates)
      })
  )

  it.live("fails a call whose child is killed while the caller is asked", () =>
    Effect.gen(function*() {
      const journal = yield* Journal.make
      const near = yield* before(journal, behind)
      const killing = Elicitation.layer({
        form: () =>
          Effect.gen(function*() {
            process.kill(journal.pids("started")[0]!, "SIGKILL")
            yield* until(() => journal.pids("started").length === 2)
            return Elicitation.accept({ name: "Ada" })
          })
      })
      const client = yield* connect(near, front, {}, killing)
      const error = yield* Effect.flip(client.callTool("ask"))
      // A stateless child has no call in progress. The next one cannot open the state that this one has sealed.
      if (behind === "2026-07-28") expect(error).toMatchObject({ reason: { error: { code: -32602 } } })
      else isLost(error)
      expect(Number(textOf(yield* client.callTool("pid")))).toBe(journal.pids("started")[1])
    }))
})
