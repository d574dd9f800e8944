/**
 * Our client with the experimental tasks of SDK v1's server, in 2025-11-25: over HTTP with sessions, and with a server for each request;
 * over stdio.
 *
 * What the SDK does otherwise than the specification says, and we take:
 * - "Tasks MUST begin in the `working` status": what is over at once is made so.
 * - A session's tasks are its own: another session of the same client does not know them.
 * - Its store keeps no JSON-RPC error. A task that failed with nothing but a message has no result, and `tasks/result` fails with
 *   `-32603` of its own.
 * - "The `progressToken` provided in the initial request remains valid throughout the task lifetime": over HTTP it cannot say what
 *   belongs to a request that is answered.
 * - "Servers MUST return a `-32601` error" of a call that has to be a task and is none: it comes as a failure of the tool.
 */
import type { ClientError } from "@skein/client/ClientError"
import type { RemoteTask, State } from "@skein/client/RemoteTask"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ServerAddress, ServerCommand } from "../clients.ts"
import { textOf } from "../conversations.ts"
import { eventually } from "../eventually.ts"
import * as Sdk from "../fixtures/tasks-sdk-v1.ts"
import type { Host } from "../hosts/host.ts"
import { streamable } from "../hosts/sdk-v1.ts"
import * as Skein from "../skein-client.ts"

const program: ServerCommand = {
  command: process.execPath,
  args: [fileURLToPath(new URL("../fixtures/tasks-sdk-v1-server.ts", import.meta.url))]
}

const options = { revisions: ["2025-11-25"], tasks: { minPollInterval: "20 millis" } } as const
const augmented = { task: { augment: true } } as const

type Door = "sessions" | "stateless" | "stdio"

for (const door of ["sessions", "stateless", "stdio"] as const satisfies ReadonlyArray<Door>) {
  describe(`2025-11-25 · the tasks of sdk-v1 · ${door === "stdio" ? door : `HTTP, ${door}`}`, () => {
    let host: Host | undefined
    let one: Skein.Host
    const server = (): ServerAddress | ServerCommand => host?.address ?? program
    const call = async (name: string, args = {}, more = {}) =>
      await one.run(one.client.callTool(name, args, { ...augmented, ...more }))
    const failed = (name: string) =>
      one.run(Effect.flip(one.client.callTool(name, {}, augmented) as Effect.Effect<unknown, ClientError>))
    const begin = async (name: string): Promise<RemoteTask> => {
      const started = await one.run(one.client.startTask(name))
      if (started._tag !== "RemoteTask") throw new Error(`${name} is no task`)
      return started
    }
    const states = async (task: RemoteTask): Promise<ReadonlyArray<State>> =>
      await one.run(Stream.runCollect(task.states))
    beforeAll(async () => {
      const kept = Sdk.stores()
      if (door === "sessions") host = await streamable(() => Sdk.make(), "sessions")
      if (door === "stateless") host = await streamable(() => Sdk.make(kept), "stateless")
      one = await Skein.talk(server(), options)
    })
    afterAll(async () => {
      await one.close()
      await host?.close()
    })

    it("a tool that was not listed and can be called as a task alone, is", async () => {
      expect(textOf(await call("must", {}, { task: {} }) as never)).toBe("As a task")
      await one.tools()
      expect(textOf(await call("must", {}, { task: {} }) as never)).toBe("As a task")
    })

    it("a task ends with the result, which is read as that of any call", async () => {
      const output = Schema.Struct({ sum: Schema.Finite })
      const sum = one.client.callTool("sum", { a: 1, b: 2 }, { ...augmented, output })
      expect(await one.run(sum)).toEqual({ sum: 3 })
      expect(await call("sum", { a: 1, b: 2 })).toMatchObject({ structuredContent: { sum: 3 } })
    })

    it("a tool that can be called either way is called as it is, unless the call says otherwise; so is one that cannot", async () => {
      // Their server waits for its own task then, a whole poll interval.
      expect(await one.run(one.client.callTool("sum", { a: 1, b: 2 }))).toMatchObject({ structuredContent: { sum: 3 } })
      expect(textOf(await call("plain") as never)).toBe("As a call")
    })

    it("a failure of the tool is a result, and a state as in 2026-07-28", async () => {
      expect(await call("fail")).toMatchObject({ isError: true, content: [{ text: Sdk.failure }] })
      const end = (await states(await begin("fail"))).at(-1)
      expect(end).toMatchObject({ status: "completed", result: { isError: true } })
    })

    it("a task that failed without a result fails the call, and its state says why", async () => {
      expect(await failed("lost")).toMatchObject({ reason: { _tag: "ProtocolError", error: { code: -32603 } } })
      const end = (await states(await begin("lost"))).at(-1)
      expect(end).toMatchObject({ status: "failed", statusMessage: Sdk.loss })
    })

    it("a call that is interrupted cancels the task, and is the only one to", async () => {
      const tasks: Array<RemoteTask> = []
      const more = { task: { augment: true, onTask: (task: RemoteTask) => void tasks.push(task) } }
      const fiber = Effect.runFork(one.client.callTool("stuck", {}, more))
      await eventually(() => expect(tasks).toHaveLength(1))
      await one.run(Fiber.interrupt(fiber))
      const known = await one.run(one.client.resumeTask(tasks[0]!.handle))
      expect((await states(known)).at(-1)).toMatchObject({ status: "cancelled" })
      expect(await one.run(Effect.flip(known.result))).toMatchObject({ reason: { _tag: "TaskCancelled" } })
    })

    it("a task is cancelled by hand; one that is over stays as it is", async () => {
      const task = await begin("stuck")
      await one.run(task.cancel)
      expect(await one.run(Effect.flip(task.result))).toMatchObject({ reason: { _tag: "TaskCancelled" } })
      const over = await begin("must")
      await one.run(over.result)
      await one.run(over.cancel)
      expect((await states(over)).at(-1)).toMatchObject({ status: "completed" })
    })

    it("tasks are listed page by page", async () => {
      for (let n = 0; n < 11; n++) await begin("must")
      const first = await one.run(one.client.listTasksPage())
      expect(first.tasks).toHaveLength(10)
      const second = await one.run(one.client.listTasksPage({ cursor: first.nextCursor! }))
      expect(second.tasks.length).toBeGreaterThan(0)
      expect(new Set([...first.tasks, ...second.tasks].map(({ taskId }) => taskId)).size)
        .toBe(first.tasks.length + second.tasks.length)
    })

    it("it is asked how long the task is to be kept, and one that is not any more is gone", async () => {
      const started = await one.run(one.client.startTask("stuck", {}, { task: { ttl: "100 millis" } }))
      if (started._tag !== "RemoteTask") throw new Error("It is no task")
      expect(await one.run(Effect.flip(started.result))).toMatchObject({ reason: { _tag: "TaskNotFound" } })
    })

    if (door !== "stdio") {
      it("a task is taken up by another client, where the server knows it", async () => {
        const { handle } = await begin("must")
        const other = await Skein.talk(server(), options)
        const resumed = other.client.resumeTask(JSON.parse(JSON.stringify(handle)))
        if (door === "sessions") {
          expect(await other.run(Effect.flip(resumed))).toMatchObject({ reason: { _tag: "TaskNotFound" } })
        } else {
          expect(textOf(await other.run(Effect.flatMap(resumed, ({ result }) => result)) as never)).toBe("As a task")
        }
        await other.close()
      })
    }

    // A server for each request does not live to hear an answer.
    if (door !== "stateless") {
      it("what a task asks comes on tasks/result, one after the other", async () => {
        const task = await begin("ask")
        const seen = await states(task)
        expect(seen.map(({ status }) => status)).toContain("input_required")
        expect(seen.at(-1)).toMatchObject({ status: "completed", result: { content: [{ text: "Ada: Ada said" }] } })
        expect(one.asked.splice(0)).toEqual(["form", "model"])
      })

      it("changes are heard of before it is looked", async () => {
        // It is told what it waits for, or waits for an hour.
        const slow = await Skein.talk(server(), {
          ...options,
          tasks: { minPollInterval: "1 hour", maxPollInterval: "1 hour" }
        })
        await slow.tools()
        expect(textOf(await slow.run(slow.client.callTool("ask", {}, augmented)) as never)).toBe("Ada: Ada said")
        await slow.close()
      })
    }

    if (door === "stdio") {
      it("progress is told after the task was made", async () => {
        const reports: Array<number> = []
        const onProgress = ({ progress }: { readonly progress: number }) => void reports.push(progress)
        expect(textOf(await call("progress", {}, { onProgress }) as never)).toBe("told")
        expect(reports).toEqual([1, 2])
      })
    }
  })
}
