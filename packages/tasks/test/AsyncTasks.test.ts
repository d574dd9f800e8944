/** Tasks that the application starts, reads and answers, in async functions. */
import { AsyncServer } from "@skein/server/AsyncServer"
import { VisibleError } from "@skein/server/HandlerError"
import * as AsyncTasks from "@skein/tasks/AsyncTasks"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Task from "@skein/tasks/Task"
import type { TaskContext } from "@skein/tasks/TaskContext"
import type { TaskError } from "@skein/tasks/TaskError"
import * as Schema from "effect/Schema"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"

const cleanups: Array<() => unknown> = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

/** A file in a folder that is removed after the test. */
const file = (name: string): string => {
  const folder = mkdtempSync(join(tmpdir(), "skein-tasks-"))
  cleanups.push(() => rmSync(folder, { recursive: true }))
  return join(folder, name)
}

const serve = async (tasks: AsyncTasks.AsyncTasks) => {
  const server = await new AsyncServer({ name: "test", version: "1.0.0" }).use(tasks.layer).listen({ port: 0 })
  cleanups.push(server.close)
  return server
}

const memory = MemoryTasks.layer({ pollInterval: "20 millis" })

const add = Task.async(
  Task.make("add", { input: { a: Schema.Int, b: Schema.Int } }),
  async ({ a, b }, { step }) => String(await step("add", () => a + b))
)

const ask = Task.async(
  Task.make("ask", { inputFrom: "anyone" }),
  async (_, { elicit, principal }) => {
    const answer = await elicit("Your name?", { name: Schema.String })
    return answer.action === "accept" ? `${principal?.id}: ${answer.content.name}` : "none"
  }
)

/** The text of a result. */
const textOf = (state: Awaited<ReturnType<AsyncTasks.AsyncTasks["wait"]>>) =>
  state?.outcome?._tag === "Result" ? (state.outcome.result["content"] as [{ text: string }])[0].text : state?.outcome

const reasonOf = (promise: Promise<unknown>) =>
  promise.then(() => "none", (error: TaskError) => `${error.reason._tag}: ${error.message}`)

describe("AsyncTasks", () => {
  it("starts a task, waits for its result, and starts none with a key that exists", async () => {
    const tasks = new AsyncTasks.AsyncTasks(memory, [add])
    await serve(tasks)
    const { id } = await tasks.start("add", { a: 1, b: 2 }, { key: "order 7" })
    expect(textOf(await tasks.wait(id))).toBe("3")
    expect((await tasks.get(id))?.status).toBe("completed")
    expect((await tasks.start("add", { a: 5, b: 5 }, { key: "order 7" })).id).toBe(id)
    expect((await tasks.list([null])).map((state) => state.id)).toEqual([id])
  })

  it("finds a task by the labels of its definition and those that it sets, and changes many", async () => {
    const labelled = Task.async(
      Task.make("bake", { input: { order: Schema.Int }, labels: ({ args }) => ({ order: String(args["order"]) }) }),
      async (_, { label, step }) => {
        await label("stage", "oven")
        await step("label", () => label("temperature", "200"))
        return "Baked"
      }
    )
    const tasks = new AsyncTasks.AsyncTasks(memory, [labelled])
    await serve(tasks)
    const ids = [(await tasks.start("bake", { order: 7 })).id, (await tasks.start("bake", { order: 8 })).id]
    for (const id of ids) expect(textOf(await tasks.wait(id))).toBe("Baked")
    const [found, ...others] = await tasks.admin.list({ labels: { order: "7", stage: "oven" } })
    expect(others).toEqual([])
    expect(found).toMatchObject({ state: { id: ids[0] }, labels: { order: "7", stage: "oven", temperature: "200" } })
    expect(await tasks.admin.count({ labels: { stage: "oven" } })).toEqual([
      { tool: "bake", status: "completed", count: 2 }
    ])
    expect(await tasks.admin.changeMany({ labels: { order: "7" } }, { action: "delete" })).toMatchObject({ changed: 1 })
    expect((await tasks.admin.list({})).map(({ state }) => state.id)).toEqual([ids[1]])
  })

  it("emits between steps once and in steps at once, and the application follows that", async () => {
    const write = Task.async(
      Task.make("write", { inputFrom: "anyone" }),
      async (_, { elicit, emit, step, transaction }) => {
        await emit("begins")
        await step("words", async () => {
          await emit({ word: 1 })
          await emit({ word: 2 })
        })
        const inTransaction = await transaction(
          "none",
          () => emit("never").then(() => "", (error: Error) => error.message)
        )
        await elicit("More?", { more: Schema.Boolean })
        await emit(inTransaction)
        return "written"
      }
    )
    const tasks = new AsyncTasks.AsyncTasks(memory, [write])
    await serve(tasks)
    const { id } = await tasks.start("write")
    const refused = "emit is not allowed inside the transaction \"none\": move it before or after"
    const all = ["begins", { word: 1 }, { word: 2 }, refused]
    const items: Array<unknown> = []
    for await (const { offset, value } of tasks.followOutput(id, { from: 1 })) {
      items.push(value)
      if (offset !== 2) continue
      for await (const { questions: [question] } of tasks.watch(id)) {
        if (question === undefined) continue
        await tasks.answer(id, question.key, { action: "accept", content: { more: true } })
        break
      }
    }
    expect(items).toEqual(all.slice(1))
    expect(await tasks.readOutput(id, { from: 3 })).toMatchObject({
      items: [{ value: refused }],
      next: 4,
      hasEnded: true
    })
    const read: Array<unknown> = []
    for await (const { value } of tasks.admin.followOutput(id)) read.push(value)
    expect(read).toEqual(all)
    expect(await tasks.admin.readOutput("unknown")).toBeUndefined()
  })

  it("submits a task with typed arguments, which starts and joins children", async () => {
    const half = Task.make("half", { input: { n: Schema.Int }, output: { n: Schema.Int } })
    const halving = Task.async(half, async ({ n }, { step }) => {
      if (n % 2 === 1) throw new VisibleError(`${n} is odd`)
      return { n: await step("half", () => n / 2) }
    })
    const all = Task.make("all", {
      input: { of: Schema.Array(Schema.Int) },
      output: { halves: Schema.Array(Schema.Int) }
    })
    const halvingAll = Task.async(all, async ({ of }, { forEach, join, start }) => {
      const first = await join(await start(half, { n: 2 }, { key: "first" }))
      const results = await forEach(half, of.map((n) => ({ n })), { onFailure: "collect" })
      return { halves: [first.n, ...results.flatMap((each) => each.status === "fulfilled" ? [each.value.n] : [])] }
    })
    const tasks = new AsyncTasks.AsyncTasks(memory, [halving, halvingAll])
    await serve(tasks)
    const { id, status, wait } = await tasks.submit(all, { of: [4, 5, 6] }, { key: "numbers" })
    expect(await wait()).toEqual({ halves: [1, 2, 3] })
    expect((await status())?.status).toBe("completed")
    expect(await tasks.admin.list({ parent: id })).toHaveLength(4)
    const odd = await tasks.submit(half, { n: 7 })
    expect(await reasonOf(odd.wait())).toBe("Failed: 7 is odd")
    expect(await odd.cancel()).toBe(false)
    expect(await reasonOf(tasks.submit(half, { n: 0.5 }))).toMatch(/^InvalidArguments: /)
  })

  it("answers the question of a task, which has its principal", async () => {
    const tasks = new AsyncTasks.AsyncTasks(memory, [ask])
    await serve(tasks)
    const { id, owner } = await tasks.start("ask", {}, { principal: { id: "ada" } })
    expect(owner).toBe("ada")
    const statuses: Array<string> = []
    for await (const { questions, status } of tasks.watch(id)) {
      statuses.push(status)
      for (const { key } of questions) {
        expect(await tasks.answer(id, key, { action: "accept", content: { name: "Lovelace" } })).toBe(true)
        expect(await tasks.answer(id, key, { action: "decline" })).toBe(false)
      }
    }
    expect(statuses).toEqual(expect.arrayContaining(["input_required", "completed"]))
    expect(textOf(await tasks.wait(id))).toBe("ada: Lovelace")
  })

  it("cancels a task, and ends the waits for it", async () => {
    const tasks = new AsyncTasks.AsyncTasks(memory, [ask])
    await serve(tasks)
    const { id } = await tasks.start("ask")
    const waiting = tasks.wait(id)
    expect(await tasks.cancel(id, "Closed today")).toBe(true)
    expect(await waiting).toMatchObject({ status: "cancelled", statusMessage: "Closed today" })
    expect(await tasks.cancel(id)).toBe(false)
    expect(await tasks.wait("unknown")).toBeUndefined()
  })

  it("rejects a wait with the reason of its signal, and ends a loop with it", async () => {
    const tasks = new AsyncTasks.AsyncTasks(memory, [ask])
    await serve(tasks)
    const { id } = await tasks.start("ask")
    const controller = new AbortController()
    const waiting = tasks.wait(id, { signal: controller.signal })
    const loop = (async () => {
      for await (const _ of tasks.watch(id, { signal: controller.signal })) controller.abort(new Error("enough"))
    })()
    await expect(waiting).rejects.toThrow("enough")
    await expect(loop).rejects.toThrow("enough")
  })

  it("rejects before the start of its server and after the end, and ends the waits at the end", async () => {
    const tasks = new AsyncTasks.AsyncTasks(memory, [ask])
    await expect(tasks.start("ask")).rejects.toThrow("no server and no worker of these tasks runs")
    const { close } = await serve(tasks)
    const { id } = await tasks.start("ask")
    const waiting = tasks.wait(id).catch((error: Error) => error.message)
    const loop = (async () => {
      for await (const _ of tasks.watch(id));
      return "ended"
    })()
    await close()
    expect(await waiting).toBe("the store of the tasks is closed")
    expect(await loop).toBe("ended")
    await expect(tasks.get(id)).rejects.toThrow("no server and no worker")
  })

  it("rejects the start of another tool, and of a task that a client must prepare", async () => {
    const prepared = Task.asyncPrepared(Task.make("prepared"), () => 1, async (_, one) => String(one))
    const tasks = new AsyncTasks.AsyncTasks(memory, [prepared])
    await serve(tasks)
    expect(await reasonOf(tasks.start("bake"))).toBe(
      "InvalidOption: the task cannot start: \"bake\" is not a task of this server"
    )
    expect(await reasonOf(tasks.start("prepared"))).toBe(
      "InvalidOption: the task cannot start: \"prepared\" is prepared in the call of a client"
    )
  })

  it("has the methods of an operator, and the schedules", async () => {
    const tasks = new AsyncTasks.AsyncTasks(memory, [add])
    await serve(tasks)
    expect(await tasks.admin.pause("add")).toBe(true)
    const { id } = await tasks.start("add", { a: 1, b: 1 })
    expect((await tasks.admin.list({ tool: "add" }))[0]).toMatchObject({ state: { id }, place: { heldBy: "pause" } })
    expect(await tasks.admin.tools()).toMatchObject([{ tool: "add" }])
    expect(await tasks.admin.resume("add")).toBe(true)
    await tasks.wait(id)
    expect((await tasks.admin.inspect(id, { values: true }))?.log).toMatchObject([{
      name: "add",
      value: "{\"v\":[2]}"
    }])
    expect((await tasks.admin.statistics()).tasks).toMatchObject([{ tool: "add", count: 1 }])
    expect(await tasks.admin.workers()).toEqual([])
    await tasks.schedules.set("daily", { cron: "0 7 * * *", task: { tool: "add", args: { a: 1, b: 2 } } })
    const started = await tasks.schedules.trigger("daily")
    expect(textOf(await tasks.wait(started!.id))).toBe("3")
    expect(await reasonOf(tasks.schedules.set("never", { cron: "no", task: { tool: "add" } }))).toContain(
      "InvalidOption"
    )
  })

  it("runs tasks in a worker without a server, and an operator beside it", async () => {
    const filename = file("tasks.db")
    const tasks = new AsyncTasks.AsyncTasks(SqliteTasks.layer({ filename, pollInterval: "20 millis" }), [ask])
    const worker = await tasks.startWorker()
    cleanups.push(worker.close)
    const { id } = await tasks.start("ask")
    const operator = await AsyncTasks.openAdmin(SqliteTasks.layerAdmin({ filename }))
    cleanups.push(operator.close)
    expect((await operator.admin.list({}))[0]?.state.id).toBe(id)
    expect(await operator.schedules.list()).toEqual([])
    expect(await operator.admin.cancel(id)).toBe(true)
    expect((await tasks.wait(id))?.status).toBe("cancelled")
    await operator.close()
    await expect(operator.admin.list({})).rejects.toThrow("the store of the tasks is closed")
    expect(await reasonOf(new AsyncTasks.AsyncTasks(SqliteTasks.layer({ filename }), []).startWorker())).toContain(
      "FileLocked"
    )
  })
})

describe("transaction", () => {
  const run = async (handler: (context: TaskContext) => Promise<unknown>) => {
    const task = Task.async(Task.make("t"), async (_, context) => JSON.stringify(await handler(context) ?? null))
    const tasks = new AsyncTasks.AsyncTasks(memory, [task])
    await serve(tasks)
    return textOf(await tasks.wait((await tasks.start("t")).id))
  }

  it("commits its statements with its record, and rolls them back when it throws", async () => {
    const text = await run(async ({ step, transaction }) => {
      await transaction("create", (sql) => sql`CREATE TABLE orders (tea TEXT)`)
      await transaction("first", async (sql) => {
        await sql`INSERT INTO orders VALUES (${"sencha"})`
      })
      await transaction("second", async (sql) => {
        await sql`INSERT INTO orders VALUES (${"matcha"})`
        throw new Error("no matcha")
      }).catch(() => {})
      await step("outside", () => {})
      return await transaction("read", (sql) => sql<{ tea: string }>`SELECT tea FROM orders`)
    })
    expect(text).toBe("[{\"tea\":\"sencha\"}]")
  })

  it("waits for a statement that its function did not await, and refuses later ones", async () => {
    let later: (() => Promise<unknown>) | undefined
    const text = await run(async ({ transaction }) => {
      await transaction("create", (sql) => {
        void sql`CREATE TABLE orders (tea TEXT)`
        later = () => sql`INSERT INTO orders VALUES (${"late"})`
      })
      await expect(later!()).rejects.toThrow("the transaction is over")
      return await transaction("read", (sql) => sql`SELECT tea FROM orders`)
    })
    expect(text).toBe("[]")
  })

  it("hides the message of a statement that fails from the client", async () => {
    const text = await run(({ transaction }) => transaction("wrong", (sql) => sql`SELECT * FROM secrets`))
    expect(text).toContain("failed unexpectedly")
  })
})

describe("Task.asyncPrepared", () => {
  it("passes the value of the call to the handler, as JSON", async () => {
    const seen: Array<unknown> = []
    const prepared = Task.asyncPrepared(
      Task.make("prepared", { input: { a: Schema.Int } }),
      async ({ a }, { request }) => ({ at: new Date(a), method: request.method }),
      async ({ a }, { at, method }, { step }) => {
        seen.push(at, method)
        return await step("add", () => `${a}`)
      }
    )
    const tasks = new AsyncTasks.AsyncTasks(memory, [prepared])
    const { AsyncClient } = await import("@skein/client/AsyncClient")
    const { url } = await serve(tasks)
    const { transport } = await import("@skein/client/NodeHttp")
    const client = await AsyncClient.connect(transport({ url: String(url) }))
    cleanups.push(() => client.close())
    expect((await client.callTool("prepared", { a: 0 })).content).toMatchObject([{ text: "0" }])
    expect(seen.slice(0, 2)).toEqual(["1970-01-01T00:00:00.000Z", "tools/call"])
  })
})
