/**
 * The context of async handlers, of tools and of tasks, over HTTP in all revisions: each member, in the handler and in a
 * step.
 */
import { describe, expect, it, vi } from "@effect/vitest"
import { AsyncClient } from "@skein/client/AsyncClient"
import * as Http from "@skein/client/Http"
import * as Revision from "@skein/protocol/Revision"
import { AsyncServer } from "@skein/server/AsyncServer"
import type { HandlerContext } from "@skein/server/HandlerContext"
import * as State from "@skein/server/State"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import type { TaskContext } from "@skein/tasks/TaskContext"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { z } from "zod"

const count = State.make("count", { schema: Schema.Int, initial: 0 })

/** The result of each member: its value as JSON, or the message of its error. */
const members: { readonly [name: string]: (context: HandlerContext) => unknown } = {
  header: ({ header }) => [header("X-Tenant"), header("authorization")],
  principal: ({ principal }) => principal?.id,
  client: ({ client }) => client?.name,
  request: ({ request }) => request.method,
  aborted: ({ signal }) => signal.aborted,
  elicit: async ({ elicit }) => {
    const answer = await elicit("How many?", z.object({ n: z.int() }))
    return answer.action === "accept" ? answer.content.n : answer.action
  },
  elicitUrl: async ({ elicitUrl }) => (await elicitUrl("Pay", "https://pay.example/")).action,
  sample: async ({ sample }) => (await sample({ messages: "Hi", maxTokens: 5 })).content,
  roots: async ({ roots }) => (await roots()).map(({ uri }) => uri),
  progress: async ({ progress }) => (await progress({ progress: 1, total: 2, message: "half" })) ?? "sent",
  log: ({ log }) => log.warn("hello") ?? "logged",
  once: ({ once }) => once("k", () => 1),
  state: async ({ state }) => (await state(count).set(4), state(count).get()),
  run: ({ run }) => run(Effect.succeed(3))
}

const outcomes = async (context: HandlerContext): Promise<string> => {
  const found: { [member: string]: unknown } = {}
  for (const [name, use] of Object.entries(members)) {
    try {
      found[name] = (await use(context)) ?? null
    } catch (error) {
      // The end of the handler is not an outcome.
      context.signal.throwIfAborted()
      found[name] = `${(error as Error).name}: ${(error as Error).message}`
    }
  }
  return JSON.stringify(found)
}

const server = () =>
  new AsyncServer({ name: "all", version: "1.0.0" })
    .tool("tool", {}, (_, context) => outcomes(context))
    .use(Tasks.withEngine(MemoryTasks.layer({ pollInterval: "20 millis" }), [
      Task.async(Task.make("task"), (_, context) => outcomes(context)),
      Task.async(Task.make("step"), (_, context: TaskContext) => context.step("inner", () => outcomes(context)))
    ]))

/** The expected values of the members in a tool. */
const expected = (revision: Revision.Revision): { readonly [member: string]: unknown } => {
  const since = (first: Revision.Revision, value: unknown) =>
    revision >= first ? value : expect.stringMatching(/^InputError: .* does not (have|support) elicitation/)
  return {
    header: ["acme", null],
    principal: "ada",
    client: "me",
    request: "tools/call",
    aborted: false,
    elicit: since("2025-06-18", 4),
    elicitUrl: since("2025-11-25", "accept"),
    sample: [{ type: "text", text: "yo" }],
    roots: ["file:///a"],
    progress: "sent",
    log: "logged",
    once: 1,
    state: 4,
    run: 3
  }
}

describe.each(Revision.all)("%s", (revision) => {
  it("has every member in a tool, in a task and in a step", async () => {
    const listening = await server().listen({
      port: 0,
      principal: async (request) => request.headers.authorization === "Bearer a" ? { id: "ada" } : undefined
    })
    const logged: Array<unknown> = []
    const reported: Array<number> = []
    const transport = Http.transport({
      url: listening.url,
      headers: { "x-tenant": "acme", authorization: "Bearer a" }
    })
    const client = await AsyncClient.connect(transport, {
      revisions: [revision],
      info: { name: "me", version: "1.0.0" },
      elicit: () => ({ action: "accept", content: { n: 4 } }),
      elicitUrl: () => ({ action: "accept" }),
      sample: () => ({ role: "assistant", model: "m", content: { type: "text", text: "yo" } }),
      roots: () => [{ uri: "file:///a" }],
      onLog: ({ data }) => void logged.push(data)
    })
    try {
      const all = async (tool: string) => {
        const { content: [block] } = await client.callTool(tool, {}, {
          onProgress: ({ progress }) => void reported.push(progress)
        })
        return JSON.parse((block as { readonly text: string }).text)
      }
      expect(await all("tool")).toEqual(expected(revision))
      await vi.waitFor(() => expect(logged).toContain("hello"), 60_000)
      await vi.waitFor(() => expect(reported).toContain(1), 60_000)
      // A task continues after its request, so it has no headers.
      const durable = { ...expected(revision), header: [null, null] }
      expect(await all("task")).toEqual(durable)
      expect(await all("step")).toEqual(durable)
    } finally {
      await client.close()
      await listening.close()
    }
  })
})
