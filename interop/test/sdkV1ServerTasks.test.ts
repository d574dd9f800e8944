/**
 * Skein's client with SDK v1's server and its experimental tasks, in 2025-11-25: over HTTP with sessions, over HTTP
 * with a server for each request, and over stdio.
 *
 * The SDK deviates from the specification, and Skein accepts it:
 * - "Tasks MUST begin in the `working` status": a task that ends immediately is created with its final status.
 * - Tasks belong to a session: another session of the same client cannot access them.
 * - The store cannot store JSON-RPC errors. A task that failed with a message only has no result, and `tasks/result`
 *   fails with `-32603`.
 * - "The `progressToken` provided in the initial request remains valid throughout the task lifetime": over HTTP it
 *   cannot send progress after the response of the request.
 * - "Servers MUST return a `-32601` error" for a call without a task if the tool requires skein: it returns a tool
 *   error.
 */
import type { ClientError } from "@skein/client/ClientError"
import type { RemoteTask, State } from "@skein/client/RemoteTask"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ServerAddress, ServerCommand } from "../testClient.ts"
import { textOf } from "../interactiveClientTests.ts"
import { eventually } from "../eventually.ts"
import * as Sdk from "../fixtures/sdkV1Tasks.ts"
import type { HttpServer } from "../servers/httpServer.ts"
import { streamable } from "../servers/sdkV1.ts"
import * as Skein from "../skeinClient.ts"

const program: ServerCommand = {
  command: process.execPath,
  args: [fileURLToPath(new URL("../fixtures/sdkV1TasksServer.ts", import.meta.url))]
}

const options = { revisions: ["2025-11-25"] } as const
const augmented = { task: { augment: true } } as const

for (const mode of ["sessions", "stateless", "stdio"] as const) {
  describe(`2025-11-25 · the tasks of sdk-v1 · ${mode === "stdio" ? mode : `HTTP, ${mode}`}`, () => {
    let httpServer: HttpServer | undefined
    let skein: Skein.InteractiveSkeinClient
    const server = (): ServerAddress | ServerCommand => httpServer?.address ?? program
    const call = async (name: string, args = {}, more = {}) =>
      await skein.run(skein.client.callTool(name, args, { ...augmented, ...more }))
    const failed = (name: string) =>
      skein.run(Effect.flip(skein.client.callTool(name, {}, augmented) as Effect.Effect<unknown, ClientError>))
    const begin = async (name: string): Promise<RemoteTask> => {
      const started = await skein.run(skein.client.startTask(name))
      if (started._tag !== "RemoteTask") throw new Error(`${name} did not create a task`)
      return started
    }
    const states = async (task: RemoteTask): Promise<ReadonlyArray<State>> =>
      await skein.run(Stream.runCollect(task.states))
    beforeAll(async () => {
      const stores = Sdk.stores()
      if (mode === "sessions") httpServer = await streamable(() => Sdk.make(), "sessions")
      if (mode === "stateless") httpServer = await streamable(() => Sdk.make(stores), "stateless")
      skein = await Skein.connectInteractive(server(), options)
    })
    afterAll(async () => {
      await skein.close()
      await httpServer?.close()
    })

    it("calls a tool that requires a task, before and after it was listed", async () => {
      expect(textOf(await call("must", {}, { task: {} }) as never)).toBe("As a task")
      await skein.tools()
      expect(textOf(await call("must", {}, { task: {} }) as never)).toBe("As a task")
    })

    it("decodes the result of a task like that of any call", async () => {
      const output = Schema.Struct({ sum: Schema.Finite })
      const sum = skein.client.callTool("sum", { a: 1, b: 2 }, { ...augmented, output })
      expect(await skein.run(sum)).toEqual({ sum: 3 })
      expect(await call("sum", { a: 1, b: 2 })).toMatchObject({ structuredContent: { sum: 3 } })
    })

    it("calls tools without a task unless the call requests one", async () => {
      // The server then waits for its own task, for a whole polling interval.
      expect(await skein.run(skein.client.callTool("sum", { a: 1, b: 2 }))).toMatchObject({
        structuredContent: { sum: 3 }
      })
      expect(textOf(await call("plain") as never)).toBe("As a call")
    })

    it("returns a tool error as a result, and the same state as in 2026-07-28", async () => {
      expect(await call("fail")).toMatchObject({ isError: true, content: [{ text: Sdk.failure }] })
      const end = (await states(await begin("fail"))).at(-1)
      expect(end).toMatchObject({ status: "completed", result: { isError: true } })
    })

    it("fails the call of a task that failed without a result, with the reason in its state", async () => {
      expect(await failed("lost")).toMatchObject({ reason: { _tag: "ProtocolError", error: { code: -32603 } } })
      const end = (await states(await begin("lost"))).at(-1)
      expect(end).toMatchObject({ status: "failed", statusMessage: Sdk.loss })
    })

    it("cancels the task of an interrupted call", async () => {
      const tasks: Array<RemoteTask> = []
      const more = { task: { augment: true, onTask: (task: RemoteTask) => void tasks.push(task) } }
      const fiber = Effect.runFork(skein.client.callTool("stuck", {}, more))
      await eventually(() => expect(tasks).toHaveLength(1))
      await skein.run(Fiber.interrupt(fiber))
      const known = await skein.run(skein.client.resumeTask(tasks[0]!.handle))
      expect((await states(known)).at(-1)).toMatchObject({ status: "cancelled" })
      expect(await skein.run(Effect.flip(known.result))).toMatchObject({ reason: { _tag: "TaskCancelled" } })
    })

    it("cancels a task, and leaves a completed one unchanged", async () => {
      const task = await begin("stuck")
      await skein.run(task.cancel)
      expect(await skein.run(Effect.flip(task.result))).toMatchObject({ reason: { _tag: "TaskCancelled" } })
      const over = await begin("must")
      await skein.run(over.result)
      await skein.run(over.cancel)
      expect((await states(over)).at(-1)).toMatchObject({ status: "completed" })
    })

    it("lists tasks in pages", async () => {
      for (let n = 0; n < 11; n++) await begin("must")
      const first = await skein.run(skein.client.listTasksPage())
      expect(first.tasks).toHaveLength(10)
      const second = await skein.run(skein.client.listTasksPage({ cursor: first.nextCursor! }))
      expect(second.tasks.length).toBeGreaterThan(0)
      expect(new Set([...first.tasks, ...second.tasks].map(({ taskId }) => taskId)).size)
        .toBe(first.tasks.length + second.tasks.length)
    })

    it("requests a ttl, and fails with Gone after it", async () => {
      const started = await skein.run(skein.client.startTask("stuck", {}, { task: { ttl: "100 millis" } }))
      if (started._tag !== "RemoteTask") throw new Error("stuck did not create a task")
      expect(await skein.run(Effect.flip(started.result))).toMatchObject({ reason: { _tag: "TaskNotFound" } })
    })

    if (mode !== "stdio") {
      it("resumes the task of another client, if the server has no sessions", async () => {
        const { handle } = await begin("must")
        const other = await Skein.connectInteractive(server(), options)
        const resumed = other.client.resumeTask(JSON.parse(JSON.stringify(handle)))
        if (mode === "sessions") {
          expect(await other.run(Effect.flip(resumed))).toMatchObject({ reason: { _tag: "TaskNotFound" } })
        } else {
          expect(textOf(await other.run(Effect.flatMap(resumed, ({ result }) => result)) as never)).toBe("As a task")
        }
        await other.close()
      })
    }

    // A server for each request does not receive the responses to its requests.
    if (mode !== "stateless") {
      it("receives one request after the other on tasks/result", async () => {
        const task = await begin("ask")
        const seen = await states(task)
        expect(seen.map(({ status }) => status)).toContain("input_required")
        expect(seen.at(-1)).toMatchObject({ status: "completed", result: { content: [{ text: "Ada: Ada said" }] } })
        expect(skein.asked.splice(0)).toEqual(["form", "model"])
      })

      it("receives changes without polling", async () => {
        // Without notifications the client would wait for an hour.
        const slow = await Skein.connectInteractive(server(), {
          ...options,
          bounds: { minPollInterval: 3_600_000 }
        })
        await slow.tools()
        expect(textOf(await slow.run(slow.client.callTool("ask", {}, augmented)) as never)).toBe("Ada: Ada said")
        await slow.close()
      })
    }

    if (mode === "stdio") {
      it("receives progress after the task was created", async () => {
        const reports: Array<number> = []
        const onProgress = ({ progress }: { readonly progress: number }) => void reports.push(progress)
        expect(textOf(await call("progress", {}, { onProgress }) as never)).toBe("done")
        expect(reports).toEqual([1, 2])
      })
    }
  })
}
